"""Hands stream records to the indexer worse than any stream would; looks at nothing itself."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.contract.index_state import deliver
from tests.contract.streams import Record


class Delivery:
    """Records come late, more than once, in another order, and some batches fail half-way."""

    def __init__(self, rng: random.Random, fresh: Callable[[], list[Record]]) -> None:
        self._rng = rng
        self._fresh = fresh
        self._waiting: list[Record] = []
        self._done: list[Record] = []

    def some(self, share: float) -> None:
        """About so many of the records that wait: of some items all, of others none, or any."""
        self._waiting += self._fresh()
        rng, waiting = self._rng, self._waiting
        if rng.random() < 0.5:
            items = [record["dynamodb"]["Keys"]["SK"]["S"] for record in waiting]
            chosen = {item for item in dict.fromkeys(items) if rng.random() < share}
            due = [record for record, item in zip(waiting, items, strict=True) if item in chosen]
        else:
            due = [record for record in waiting if rng.random() < share]
            rng.shuffle(due)
        if self._done and rng.random() < 0.5:
            due = rng.sample(self._done, min(4, len(self._done))) + due
        self._hand_over(due)

    def rest(self) -> None:
        """Everything that waits."""
        self._waiting += self._fresh()
        self._hand_over(list(self._waiting))

    def forget(self) -> None:
        """What was written so far never comes."""
        self._fresh()
        self._waiting, self._done = [], []

    def _hand_over(self, due: list[Record]) -> None:
        while due:
            batch = due[: self._rng.choice((1, 5, 25))]
            failing_call = self._rng.randrange(12) if self._rng.random() < 0.1 else None
            handled = batch[: deliver(batch, failing_call)]
            due = due[len(handled) :]
            self._done += handled
            gone = set(map(id, handled))
            self._waiting = [record for record in self._waiting if id(record) not in gone]
