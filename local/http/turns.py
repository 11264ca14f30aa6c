"""How many requests are served at a time: any number, but a few while the index is far behind.

The engine does one thing at a time, in the order in which it is asked. What follows the stream asks
for sixteen things at once; beside as many callers it would fall behind without end, and searches
read each run that it has not followed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

FEW: Final = 4
PATIENCE_SECONDS: Final = 0.25
"""A request that waits for somebody else, such as a provider of models, keeps its turn meanwhile;
nobody waits longer for it."""


class Turns:
    """For one event loop."""

    def __init__(self, behind: Callable[[], bool] = lambda: False) -> None:
        """``behind`` tells whether the index is."""
        self._behind = behind
        self._served = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """While a request is served; before, it waits for its turn."""
        if self._served >= FEW and self._behind():
            await self._wait()
        self._served += 1
        try:
            yield
        finally:
            self._served -= 1
            self._call_next()

    async def _wait(self) -> None:
        called = asyncio.get_running_loop().create_future()
        self._waiting.append(called)
        await asyncio.wait((called,), timeout=PATIENCE_SECONDS)
        called.cancel()

    def _call_next(self) -> None:
        while self._waiting:
            called = self._waiting.popleft()
            if not called.done():
                called.set_result(None)
                return
