"""Breaks one chosen DynamoDB call: refuses, repeats or throttles it, or loses its answer."""

from __future__ import annotations

import enum
import os
from typing import Any, Final

from tests.doubles.proxy import NO_ANSWER, Answer, Call, Forward

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
DATA = WRITES | {"GetItem", "BatchGetItem", "Query", "TransactGetItems"}


class Fault(enum.Enum):
    """What happens to the chosen call. The client sees it as AWS would show it."""

    REFUSED = "500 InternalServerError before the engine saw the call"
    CUT = "the connection closes before the engine saw the call"
    ANSWER_LOST = "the engine executes the call, then the connection closes"
    ANSWER_500 = "the engine executes the call, the answer is 500 InternalServerError"
    REPEATED = "the engine executes the call twice; the second answer counts"
    THROTTLED = "400 ProvisionedThroughputExceededException"
    THROTTLED_API = "400 ThrottlingException"
    CONFLICT = "400 TransactionCanceledException or TransactionConflictException"
    UNPROCESSED = "half of a batch is handed back unprocessed; other calls are throttled"
    DEAD = "from this call on nothing is executed: the process was killed before it"
    DEAD_AFTER = "this call is executed, nothing after it: the process was killed behind it"


KILLED: Final = frozenset({Fault.DEAD, Fault.DEAD_AFTER})
KILLED_AT: Final = DATA if int(os.environ.get("CONTRACT_EXAMPLES", "1")) > 1 else WRITES
"""The calls that a process is killed at, unless a test names others. A process that is killed at a
read leaves what it leaves if it is killed at the next write; `make test-long` does both."""


class FaultyCalls:
    """A stage of the proxy that is healthy until ``arm`` chooses a call.

    ``seen`` counts the calls since then, so a test breaks the first, second, … call in turn until
    ``fired`` stays false; ``total`` counts all calls, so a test may count them beforehand, and
    ``kills`` those among them at which a process can be killed.
    """

    def __init__(self) -> None:
        self.seen = self.total = self.kills = 0
        self.fired = False
        self._fault: Fault | None = None
        self._nth = 0
        self._counted: frozenset[str] = DATA
        self._lost: frozenset[str] = DATA

    def arm(self, fault: Fault, nth: int, operations: frozenset[str] | None = None) -> None:
        """Breaks the ``nth`` call, counted from 1, among those of ``operations``: by default all,
        or those of ``KILLED_AT`` for a fault of ``KILLED``, after which no call is executed."""
        self._fault, self._nth = fault, nth
        self._counted = operations or (KILLED_AT if fault in KILLED else DATA)
        self._lost = operations or DATA
        self.seen, self.fired = 0, False

    def heal(self) -> None:
        self._fault = None

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        self.total += call.operation in DATA
        self.kills += call.operation in KILLED_AT
        if self._fault in KILLED and self.fired and call.operation in self._lost:
            return NO_ANSWER
        if call.operation not in self._counted:
            return await forward(call)
        self.seen += 1
        if self._fault is None or self.seen != self._nth:
            return await forward(call)
        self.fired = True
        return await self._break(call, forward, self._fault)

    @staticmethod
    async def _break(call: Call, forward: Forward, fault: Fault) -> Answer:
        match fault:
            case Fault.REFUSED:
                return call.answer_error("InternalServerError", "refused by the test", 500)
            case Fault.CUT | Fault.DEAD:
                return NO_ANSWER
            case Fault.ANSWER_LOST | Fault.DEAD_AFTER:
                await forward(call)
                return NO_ANSWER
            case Fault.ANSWER_500:
                await forward(call)
                return call.answer_error("InternalServerError", "lost by the test", 500)
            case Fault.REPEATED:
                await forward(call)
                return await forward(call)
            case Fault.THROTTLED_API:
                return call.answer_error("ThrottlingException", "Rate exceeded")
            case Fault.CONFLICT:
                return _conflict(call)
            case Fault.UNPROCESSED if call.operation.startswith("Batch"):
                return await _half(call, forward)
            case _:
                return call.answer_error(
                    "ProvisionedThroughputExceededException", "throttled by the test"
                )


def _conflict(call: Call) -> Answer:
    if not call.operation.startswith("Transact"):
        return call.answer_error("TransactionConflictException", "Transaction is ongoing")
    reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in call.body["TransactItems"]]
    reasons[0] = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
    codes = ", ".join(reason["Code"] for reason in reasons)
    return call.answer_error(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        CancellationReasons=reasons,
    )


async def _half(call: Call, forward: Forward) -> Answer:
    """Executes the first half of a batch (of one item: nothing) and hands the rest back."""
    items = call.body["RequestItems"]
    done: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for table, wanted in items.items():
        entries = wanted if isinstance(wanted, list) else wanted["Keys"]
        middle = len(entries) // 2
        for part, chosen in ((done, entries[:middle]), (left, entries[middle:])):
            if chosen:
                part[table] = chosen if isinstance(wanted, list) else {**wanted, "Keys": chosen}
    key = "UnprocessedItems" if call.operation == "BatchWriteItem" else "UnprocessedKeys"
    if not done:
        empty: dict[str, Any] = {} if key == "UnprocessedItems" else {"Responses": {}}
        return Answer(200, {**empty, key: left})
    answer = await forward(call._replace(body={**call.body, "RequestItems": done}))
    if answer.status != 200 or answer.body is None:
        return answer
    for table, rest in answer.body.get(key, {}).items():
        if isinstance(rest, list):
            left[table] = [*left.get(table, []), *rest]
        else:
            left[table] = {**rest, "Keys": [*left.get(table, rest)["Keys"], *rest["Keys"]]}
    return Answer(200, {**answer.body, key: left})
