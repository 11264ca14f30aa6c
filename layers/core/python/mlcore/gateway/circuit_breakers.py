"""Circuit breakers: a model whose provider has failed several times in a row is not called for some
seconds. Then one call tries it.

Their state is in the memory of a process, so each process of a server counts failures by itself.
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
"""Number of failures in a row, without any answer between them, that opens a circuit."""
OPEN_SECONDS: Final = 5.0
MAX_OPEN_SECONDS: Final = 30.0
"""The longest time for which a provider's ``Retry-After`` keeps a circuit open."""
PROBE_SECONDS: Final = 10.0
"""How long other calls are refused while one call tries the model again."""
MAX_CIRCUITS: Final = 1000
"""Maximum number of circuits with failures in memory. Beyond it, the circuit whose last failure is
the oldest is forgotten."""


class _Circuit:
    __slots__ = ("failures", "open_until", "status")

    def __init__(self) -> None:
        self.failures = 0
        self.status = 503
        """The status of the last failure."""
        self.open_until = 0.0


class CircuitBreakers:
    """The state of this process's circuit breakers, by model. Threads may use it concurrently."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: OrderedDict[Hashable, _Circuit] = OrderedDict()

    def check(self, model: Hashable) -> bool:
        """Checks that a model may be called. Returns True if this call is a probe: the circuit was
        open, its time has ended, and this one call tries the model while others are still refused.

        Raises:
            GatewayCallFailed: the circuit is open. Status 429 if the provider's last failure had
                it, else 503; with the seconds until a retry. The text of the failure is not
                repeated, because it belongs to another call.
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
        """Records that a model has answered, which closes its circuit."""
        if self._failing:
            with self._lock:
                self._failing.pop(model, None)

    def add_failure(self, model: Hashable, error: BaseException, *, is_probe: bool = False) -> bool:
        """Records that a call of a model failed. Counts the failure only if the provider is
        unavailable. An answer with a status below 500 that refuses the request closes the circuit,
        because the provider works. Any other failure changes nothing.

        Args:
            is_probe: whether :meth:`check` returned True for the call. If the probe's failure
                neither opens nor closes the circuit, the next call is a probe.

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
