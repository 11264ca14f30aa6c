"""Circuit breakers: a model whose provider has failed several times in a row is not called for some
seconds. Then one call tries it.

They are in the memory of the process. So each process of a server learns of a failure by itself.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from mlcore.errors import GatewayCallFailed

FAILURES: Final = 5
"""So many failures in a row, without any answer between them, open a circuit."""
OPEN_SECONDS: Final = 5.0
MAX_OPEN_SECONDS: Final = 30.0
"""The longest time for which a provider's ``Retry-After`` keeps a circuit open."""
PROBE_SECONDS: Final = 10.0
"""How long other calls wait for the call that tries the model again."""
MAX_CIRCUITS: Final = 1000
"""Circuits with failures that are kept; those without a failure for the longest time go first."""


class _Circuit:
    __slots__ = ("failures", "open_until", "status")

    def __init__(self) -> None:
        self.failures = 0
        self.status = 503
        """The status of the last failure."""
        self.open_until = 0.0


class CircuitBreakers:
    """The circuits of this process, by model. Threads may use it concurrently."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: OrderedDict[Hashable, _Circuit] = OrderedDict()

    def check(self, model: Hashable) -> bool:
        """Checks that a model may be called. If its circuit was open and the time is over, the
        caller is the one that tries it. Returns whether that is so.

        Raises:
            GatewayCallFailed: the circuit is open; with the status of the provider's last failure,
                429 or 503, and the time to try again. The text of the failure is not repeated,
                because it belongs to another call.
        """
        with self._lock:
            circuit = self._failing.get(model)
            if circuit is None or circuit.failures < FAILURES:
                return False
            now = self._clock()
            if now >= circuit.open_until:
                circuit.open_until = now + PROBE_SECONDS
                return True
            status, seconds = circuit.status, math.ceil(circuit.open_until - now)
        raise GatewayCallFailed(
            status if status == 429 else 503,
            f"The model is not called for {seconds} seconds, because the provider failed several "
            f"times in a row, at last with status {status}.",
            str(seconds),
        )

    def add_success(self, model: Hashable) -> None:
        """Notes that a model has answered, which closes its circuit."""
        if self._failing:
            with self._lock:
                self._failing.pop(model, None)

    def add_failure(self, model: Hashable, error: BaseException, *, is_probe: bool = False) -> bool:
        """Notes that a call of a model failed. Only failures that say that the provider cannot work
        count: another one may be the fault of one request. An answer of the provider that refuses
        the request closes the circuit. Any other failure says nothing about the provider.

        Args:
            is_probe: whether the call tried a model whose circuit was open. If its failure says
                nothing, the next call tries the model.

        Returns:
            Whether the circuit is open now, so that the model must not be called.
        """
        if isinstance(error, GatewayCallFailed):
            if error.traits.is_unavailable:
                return self._count(model, error)
            if error.traits.is_answer and error.status < 500:
                self.add_success(model)
                return False
        if is_probe:
            with self._lock:
                circuit = self._failing.get(model)
                if circuit is not None:
                    circuit.open_until = self._clock()
        return False

    def _count(self, model: Hashable, error: GatewayCallFailed) -> bool:
        """Counts a failure. Returns whether the circuit is open now."""
        with self._lock:
            circuit = self._failing.setdefault(model, _Circuit())
            self._failing.move_to_end(model)
            circuit.failures += 1
            circuit.status = error.status
            seconds = max(OPEN_SECONDS, error.retry_seconds or 0.0)
            circuit.open_until = self._clock() + min(seconds, MAX_OPEN_SECONDS)
            if len(self._failing) > MAX_CIRCUITS:
                self._failing.popitem(last=False)
            return circuit.failures >= FAILURES


CIRCUITS: Final = CircuitBreakers()
"""The circuits of this process."""
