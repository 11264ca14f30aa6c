"""DynamoDB's limits of one partition key: 1,000 write and 3,000 read units a second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from tests.doubles.proxy import Answer, Call, Forward

WRITE_UNITS: Final = 1_000.0
READ_UNITS: Final = 3_000.0
"""A second. AWS lets a partition save up to 300 seconds of what it did not use; here nothing is
saved for longer than a second."""

_WRITES: Final = frozenset(
    {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
)
_MESSAGE: Final = (
    "The level of configured provisioned throughput for the table was exceeded. Consider "
    "increasing your provisioning level with the UpdateTable API."
)


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class PartitionLimits:
    """A stage of the proxy: refuses what is about a partition that has used up its units, as AWS
    does, and counts what calls consumed. Clients of clocks of their own see it by ``clock``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[tuple[str, bool], tuple[float, float]] = {}
        """Units left by partition and whether they are of writes, and when that was."""
        self.consumed: defaultdict[bool, float] = defaultdict(float)
        """Units of reads (False) and writes (True)."""
        self.refused = 0

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        if call.operation == "DescribeTable":
            return await forward(call)
        partitions = sorted(set(_partitions(call.body)))
        writes = call.operation in _WRITES
        if any(self._units(partition, writes) <= 0 for partition in partitions):
            self.refused += 1
            return _refusal(call)
        answer = await forward(call)
        units = _consumed(answer)
        self.consumed[writes] += units
        for partition in partitions:
            left = self._units(partition, writes) - units / len(partitions)
            self._left[partition, writes] = (left, self._clock.now)
        return answer

    def _units(self, partition: str, writes: bool) -> float:
        most = WRITE_UNITS if writes else READ_UNITS
        left, at = self._left.get((partition, writes), (most, self._clock.now))
        return min(most, left + most * (self._clock.now - at))


def _partitions(value: Any) -> Iterator[str]:
    """What a request names as partition keys of items, or of a Query."""
    if isinstance(value, dict):
        if "KeyConditionExpression" in value:
            yield value["ExpressionAttributeValues"][":p"]["S"]
        elif isinstance(value.get("PK"), dict) and "SK" in value:
            yield value["PK"]["S"]
        else:
            for part in value.values():
                yield from _partitions(part)
    elif isinstance(value, list):
        for part in value:
            yield from _partitions(part)


def _consumed(answer: Answer) -> float:
    consumed = (answer.body or {}).get("ConsumedCapacity") or []
    capacities = consumed if isinstance(consumed, list) else [consumed]
    return sum(float(capacity["CapacityUnits"]) for capacity in capacities)


def _refusal(call: Call) -> Answer:
    if call.operation == "TransactWriteItems":
        reasons = [
            {"Code": "ProvisionedThroughputExceeded", "Message": _MESSAGE}
            for _ in call.body["TransactItems"]
        ]
        codes = ", ".join(reason["Code"] for reason in reasons)
        return call.answer_error(
            "TransactionCanceledException",
            "Transaction cancelled, please refer cancellation reasons for specific reasons "
            f"[{codes}]",
            CancellationReasons=reasons,
        )
    return call.answer_error("ProvisionedThroughputExceededException", _MESSAGE)
