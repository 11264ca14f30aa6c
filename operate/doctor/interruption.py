"""Ctrl-C and SIGTERM, which wait for the answer to a request that was sent."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns a signal into a KeyboardInterrupt where nothing can be left behind.

    A server goes on with a request whose caller has left. What such a request creates after the
    removal has looked for it would stay, so a signal takes effect before the next request, or at
    once inside ``immediate``. A second signal takes effect at once everywhere.
    """

    def __init__(self) -> None:
        self._pending = False
        self._is_immediate = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handles the signals as this class says; restores the former handlers at the end."""
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal has come since the last one was raised."""
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def immediate(self) -> Iterator[None]:
        """Nothing is created here, so a signal takes effect at once."""
        self._is_immediate = True
        try:
            self.check()
            yield
        finally:
            self._is_immediate = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_immediate or self._pending:
            self._pending = False
            raise KeyboardInterrupt
        self._pending = True
