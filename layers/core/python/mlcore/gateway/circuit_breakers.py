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

from mlcore.errors import CallerLeft, GatewayCallFailed, MlflowError

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

    def check(self, model: Hashable) -> None:
        """Checks that a model may be called. If its circuit was open and the time is over, the
        caller is the one that tries it.

        Raises:
            GatewayCallFailed: the circuit is open; with the status of the provider's last failure,
                429 or 503, and the time to try again. The text of the failure is not repeated,
                because it belongs to another call.
        """
        with self._lock:
            circuit = self._failing.get(model)
            if circuit is None or circuit.failures < FAILURES:
                return
            now = self._clock()
            if now >= circuit.open_until:
                circuit.open_until = now + PROBE_SECONDS
                return
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

    def add_failure(self, model: Hashable, error: MlflowError) -> None:
        """Notes that a call of a model failed. Only failures that say that the provider cannot work
        count: another one may be the fault of one request. An answer that refuses the request
        closes the circuit."""
        if isinstance(error, CallerLeft):
            return
        if not isinstance(error, GatewayCallFailed) or not error.is_unavailable:
            if error.status < 500:
                self.add_success(model)
            return
        with self._lock:
            circuit = self._failing.setdefault(model, _Circuit())
            self._failing.move_to_end(model)
            circuit.failures += 1
            circuit.status = error.status
            seconds = max(OPEN_SECONDS, error.retry_seconds or 0.0)
            circuit.open_until = self._clock() + min(seconds, MAX_OPEN_SECONDS)
            if len(self._failing) > MAX_CIRCUITS:
                self._failing.popitem(last=False)


CIRCUITS: Final = CircuitBreakers()
"""The circuits of this process."""
