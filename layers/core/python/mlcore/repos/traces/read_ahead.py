"""Reads the traces of many small experiments, those of several experiments in one call, so that
round trips do not grow with experiments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table

READ_TOGETHER: Final = 1_000
"""Traces that are read in one call; more only if one experiment has more."""


class ReadAhead:
    """Reads traces as :meth:`mlcore.db.table.Table.batch_get`, and with them those that are wanted
    next.

    Args:
        upcoming: the keys of the traces of each experiment, in the order in which the experiments'
            traces are wanted. Each list is wanted once, as a whole.
    """

    def __init__(self, upcoming: Iterable[Sequence[Key]]) -> None:
        self._upcoming = deque(places for places in upcoming if places)
        self._items: dict[Key, Raw | None] = {}

    def batch_get(self, wanted: Sequence[Key]) -> list[Raw | None]:
        """Returns the items of the traces in the order of their keys; None for missing ones."""
        if self._upcoming and list(wanted) == list(self._upcoming[0]):
            together = list(self._upcoming.popleft())
            while self._upcoming and len(together) + len(self._upcoming[0]) <= READ_TOGETHER:
                together += self._upcoming.popleft()
            self._items = dict(zip(together, table.batch_get(together), strict=True))
        if all(key in self._items for key in wanted):
            return [self._items.pop(key) for key in wanted]
        return table.batch_get(wanted)
