"""Answers queries on global indexes as the table stood seconds ago; the rest passes through."""

from __future__ import annotations

import re
import time
from typing import Any

from tests.doubles.proxy import Answer, Call, Forward

Item = dict[str, Any]
_INDEXES = tuple(range(1, 6))
_PROJECTED = ("PK", "SK", *(f"gsi{n}{part}" for n in _INDEXES for part in ("pk", "sk")))


class LaggingIndexes:
    """A stage of the proxy, placed last, on a table that is empty when it starts.

    It reads every written item back and keeps what GSI1..GSI5 would project of it together with
    the time. A query on one of them is answered from that record as it stood ``seconds`` ago, so
    new items are absent, deleted items still there and moved items at their old place.
    ``seconds`` may change at any time; infinity freezes the indexes.
    """

    def __init__(self, seconds: float = float("inf")) -> None:
        self.seconds = seconds
        self.queries = 0
        self._states: dict[str, dict[tuple[str, str], list[tuple[float, Item | None]]]] = {}

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        index = str(call.body.get("IndexName", ""))
        if call.operation == "Query" and re.fullmatch("GSI[1-5]", index):
            self.queries += 1
            if call.body.get("ConsistentRead"):
                return await forward(call)
            return self._query(call, index.lower())
        answer = await forward(call)
        for table, keys in _written(call).items():
            await self._remember(table, keys, call, forward)
        return answer

    async def _remember(
        self, table: str, keys: list[tuple[str, str]], call: Call, forward: Forward
    ) -> None:
        states = self._states.setdefault(table, {})
        for start in range(0, len(keys), 100):
            part = keys[start : start + 100]
            request = {
                table: {
                    "Keys": [{"PK": {"S": pk}, "SK": {"S": sk}} for pk, sk in part],
                    "ConsistentRead": True,
                    "ProjectionExpression": ",".join(_PROJECTED),
                }
            }
            headers = {**call.headers, "x-amz-target": "DynamoDB_20120810.BatchGetItem"}
            results: dict[tuple[str, str], Item] = {}
            while request:
                answer = await forward(Call("BatchGetItem", {"RequestItems": request}, headers))
                assert answer.status == 200, answer
                assert answer.body is not None
                for item in answer.body["Responses"].get(table, ()):
                    results[item["PK"]["S"], item["SK"]["S"]] = item
                request = answer.body.get("UnprocessedKeys") or {}
            now = time.monotonic()
            for key in part:
                states.setdefault(key, []).append((now, results.get(key)))

    def _query(self, call: Call, index: str) -> Answer:
        body = call.body
        names = body.get("ExpressionAttributeNames", {})
        values = body.get("ExpressionAttributeValues", {})
        if "FilterExpression" in body or "KeyConditions" in body:
            return call.answer_error(
                "ValidationException", "the double evaluates key conditions only"
            )
        condition = _condition(body["KeyConditionExpression"], names, values)
        moment = time.monotonic() - self.seconds
        sort, hash_key = f"{index}sk", f"{index}pk"
        rows = [
            {name: item[name] for name in ("PK", "SK", hash_key, sort)}
            for item in self._as_of(body["TableName"], moment)
            if hash_key in item and sort in item and condition(item)
        ]

        def position(row: Item) -> tuple[str, ...]:
            return row[sort]["S"], row["PK"]["S"], row["SK"]["S"]

        backward = body.get("ScanIndexForward") is False
        rows.sort(key=position, reverse=backward)
        start = body.get("ExclusiveStartKey")
        if start is not None:
            edge = position(start)
            rows = [
                row for row in rows if (position(row) < edge) == backward and position(row) != edge
            ]
        limit = int(body.get("Limit", len(rows) or 1))
        page, more = rows[:limit], len(rows) > limit
        answer: dict[str, Any] = {"Count": len(page), "ScannedCount": len(page)}
        if body.get("Select") != "COUNT":
            wanted = body.get("ProjectionExpression")
            kept = {names.get(n.strip(), n.strip()) for n in wanted.split(",")} if wanted else None
            answer["Items"] = [
                {name: value for name, value in row.items() if kept is None or name in kept}
                for row in page
            ]
        if more:
            answer["LastEvaluatedKey"] = page[-1]
        if "ReturnConsumedCapacity" in body:
            units = max(0.5, 0.5 * -(-sum(len(str(row)) for row in page) // 4096))
            answer["ConsumedCapacity"] = {"TableName": body["TableName"], "CapacityUnits": units}
        return Answer(200, answer)

    def _as_of(self, table: str, moment: float) -> list[Item]:
        items = []
        for states in self._states.get(table, {}).values():
            past = [state for at, state in states if at <= moment]
            if past and past[-1] is not None:
                items.append(past[-1])
        return items


def _written(call: Call) -> dict[str, list[tuple[str, str]]]:
    """The keys a call may have written, by table."""
    keys: dict[str, dict[tuple[str, str], None]] = {}

    def add(table: str, item: Item) -> None:
        keys.setdefault(table, {})[item["PK"]["S"], item["SK"]["S"]] = None

    body = call.body
    match call.operation:
        case "PutItem":
            add(body["TableName"], body["Item"])
        case "UpdateItem" | "DeleteItem":
            add(body["TableName"], body["Key"])
        case "BatchWriteItem":
            for table, requests in body["RequestItems"].items():
                for request in requests:
                    put, delete = request.get("PutRequest"), request.get("DeleteRequest")
                    add(table, put["Item"] if put else delete["Key"])
        case "TransactWriteItems":
            for action in body["TransactItems"]:
                for kind, part in action.items():
                    if kind != "ConditionCheck":
                        add(part["TableName"], part["Item"] if kind == "Put" else part["Key"])
    return {table: list(key) for table, key in keys.items()}


_TERM = re.compile(
    r"\s*\(?\s*(?:begins_with\s*\(\s*(?P<prefixed>[#\w]+)\s*,\s*(?P<prefix>:\w+)\s*\)"
    r"|(?P<between>[#\w]+)\s+BETWEEN\s+(?P<low>:\w+)\s+AND\s+(?P<high>:\w+)"
    r"|(?P<name>[#\w]+)\s*(?P<operator><=|>=|=|<|>)\s*(?P<value>:\w+))\s*\)?\s*",
    re.IGNORECASE,
)


def _condition(expression: str, names: dict[str, str], values: dict[str, Any]) -> Any:
    """A predicate over items from a KeyConditionExpression on string keys."""
    tests = []
    rest = expression
    while rest:
        term = _TERM.match(rest)
        assert term, f"the double cannot read {expression!r}"
        tests.append(_test(term, names, values))
        rest = re.sub(r"^AND\b", "", rest[term.end() :], flags=re.IGNORECASE)
    return lambda item: all(test(item) for test in tests)


def _test(term: re.Match[str], names: dict[str, str], values: dict[str, Any]) -> Any:
    part = term.groupdict()
    name = part["prefixed"] or part["between"] or part["name"]
    name = names.get(name, name)

    def value(placeholder: str) -> str:
        return str(values[part[placeholder]]["S"])

    if part["prefixed"]:
        prefix = value("prefix")
        return lambda item: item[name]["S"].startswith(prefix)
    if part["between"]:
        low, high = value("low"), value("high")
        return lambda item: low <= item[name]["S"] <= high
    wanted = value("value")
    compare = {
        "=": lambda a: a == wanted,
        "<": lambda a: a < wanted,
        "<=": lambda a: a <= wanted,
        ">": lambda a: a > wanted,
        ">=": lambda a: a >= wanted,
    }[part["operator"]]
    return lambda item: compare(item[name]["S"])
