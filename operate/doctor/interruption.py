"""Delays Ctrl-C and SIGTERM until the server has answered the request of the command ``doctor``."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns SIGINT and SIGTERM into a KeyboardInterrupt between two requests that the command
    ``doctor`` sends to a server.

    A server continues a request even if its caller has disconnected. If that request created an
    entity after ``doctor`` removed what it had made, the entity would stay. So a signal takes
    effect just before the next request, or at once within :meth:`immediate`. A second signal takes
    effect at once everywhere.
    """

    def __init__(self) -> None:
        self._pending = False
        self._is_immediate = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Context manager: during the block SIGINT and SIGTERM raise KeyboardInterrupt between two
        requests that ``doctor`` sends. Restores the former signal handlers at the end."""
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt, once, if a SIGINT or SIGTERM has not taken effect yet."""
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def immediate(self) -> Iterator[None]:
        """Context manager for code that creates nothing on the server: a signal takes effect at
        once."""
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
