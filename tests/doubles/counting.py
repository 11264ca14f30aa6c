"""Counts DynamoDB requests, capacity, sequential round trips and reads that might be stale."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.doubles.proxy import Answer, Call, Forward

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})
_METERED = _READS | {
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "BatchWriteItem",
    "TransactWriteItems",
}


class Entry(NamedTuple):
    """One call that the product sent; times in seconds of the monotonic clock."""

    operation: str
    began: float
    ended: float
    capacity: float
    status: int
    stale: bool
    body: dict[str, Any]


class Measurement:
    """What a block of code cost. Complete once the block has ended."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    @property
    def requests(self) -> Counter[str]:
        return Counter(entry.operation for entry in self.entries)

    @property
    def read_units(self) -> float:
        return sum(entry.capacity for entry in self.entries if entry.operation in _READS)

    @property
    def write_units(self) -> float:
        return sum(entry.capacity for entry in self.entries if entry.operation not in _READS)

    @property
    def round_trips(self) -> int:
        """The longest chain of calls each of which began after the one before it had ended."""
        chain, free_at = 0, float("-inf")
        for entry in sorted(self.entries, key=lambda entry: entry.ended):
            if entry.began >= free_at:
                chain, free_at = chain + 1, entry.ended
        return chain

    @property
    def stale_reads(self) -> list[Entry]:
        """Reads of the table or a local index that did not ask for consistency."""
        return [entry for entry in self.entries if entry.stale]

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {name}" for name, count in sorted(self.requests.items()))
        return f"{self.round_trips} RT, {self.read_units:g} RCU, {self.write_units:g} WCU ({calls})"


class Counting:
    """A stage of the proxy. Several blocks may measure at once; each sees all calls."""

    def __init__(self) -> None:
        self._open: list[Measurement] = []

    @contextlib.contextmanager
    def measure(self) -> Iterator[Measurement]:
        measurement = Measurement()
        self._open.append(measurement)
        try:
            yield measurement
        finally:
            self._open.remove(measurement)

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        requested = "ReturnConsumedCapacity" in call.body
        if call.operation in _METERED and not requested:
            call = call._replace(body={**call.body, "ReturnConsumedCapacity": "TOTAL"})
        began = time.monotonic()
        answer = await forward(call)
        ended = time.monotonic()
        capacity = (answer.body or {}).get("ConsumedCapacity", ())
        if not requested and answer.body:
            answer.body.pop("ConsumedCapacity", None)
        entry = Entry(
            operation=call.operation,
            began=began,
            ended=ended,
            capacity=sum(
                part["CapacityUnits"]
                for part in ([capacity] if isinstance(capacity, dict) else capacity)
            ),
            status=answer.status,
            stale=_may_be_stale(call),
            body=call.body,
        )
        for measurement in self._open:
            measurement.entries.append(entry)
        return answer


def _may_be_stale(call: Call) -> bool:
    if call.operation in {"GetItem", "Scan"}:
        return not call.body.get("ConsistentRead")
    if call.operation == "Query":
        index = str(call.body.get("IndexName", ""))
        return not index.upper().startswith("GSI") and not call.body.get("ConsistentRead")
    if call.operation == "BatchGetItem":
        tables = call.body.get("RequestItems", {}).values()
        return not all(table.get("ConsistentRead") for table in tables)
    return False
