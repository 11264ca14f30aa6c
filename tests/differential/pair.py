"""Tells stock MLflow and the product the same things and compares what they answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.differential.permitted import PERMITTED
from tests.differential.rest import Call, Reply, Side, shortened


class Pair:
    """Stock and the product, told the same things in the same order."""

    def __init__(self, stock: str, product: str) -> None:
        self.stock, self.product = Side(stock), Side(product)
        self.calls = 0
        self.permitted: dict[str, int] = {}

    def close(self) -> None:
        self.stock.close()
        self.product.close()

    def send(self, call: Call) -> Reply:
        """Sends the call to both, fails when the answers differ, returns the product's."""
        return self.exchange(call)[0]

    def exchange(self, call: Call) -> tuple[Reply, str]:
        """The product's reply and the name of the permitted difference, empty for equal replies."""
        replies = self.stock.send(call), self.product.send(call)
        self.calls += 1
        if replies[0].status == replies[1].status:  # else one side shows ids that the other has not
            self.stock.learn(replies[0].body)
            self.product.learn(replies[1].body)
        stock = self.stock.comparable(replies[0])
        ours = self.product.comparable(replies[1])
        if stock == ours:
            return replies[1], ""
        for row in PERMITTED:
            if (row.always or row.name in call.permits) and row.holds(stock, ours):
                self.permitted[row.name] = self.permitted.get(row.name, 0) + 1
                return replies[1], row.name
        raise AssertionError(_report(call, stock, ours))

    def send_all(self, calls: Iterable[Call]) -> None:
        """Sends every call even after a difference, then fails with all of them."""
        failures = []
        for call in calls:
            try:
                self.send(call)
            except AssertionError as failure:
                failures.append(str(failure))
        assert not failures, f"{len(failures)} differences\n" + "\n".join(failures)


def _report(call: Call, stock: Reply, ours: Reply) -> str:
    lines = [str(call)]
    if stock.status != ours.status or not isinstance(stock.body, dict):
        for name, reply in (("stock", stock), ("ours ", ours)):
            text = json.dumps(reply.body, ensure_ascii=False)
            lines.append(f"  {name} {reply.status} {shortened(text)[:600]}")
    else:
        lines += [f"  {stock.status} {line}" for line in _differences(stock.body, ours.body, "")]
    return "\n".join(lines)


def _differences(stock: Any, ours: Any, path: str) -> Iterator[str]:
    """The places where two JSON values differ, one line each."""
    if isinstance(stock, dict) and isinstance(ours, dict):
        for key in sorted(stock.keys() | ours.keys()):
            yield from _differences(
                stock.get(key, "(absent)"), ours.get(key, "(absent)"), f"{path}.{key}"
            )
    elif isinstance(stock, list) and isinstance(ours, list) and len(stock) == len(ours):
        for number, (left, right) in enumerate(zip(stock, ours, strict=True)):
            yield from _differences(left, right, f"{path}[{number}]")
    elif stock != ours:
        left, right = (
            shortened(json.dumps(value, ensure_ascii=False))[:300] for value in (stock, ours)
        )
        yield f"{path}: stock {left} ours {right}"


@contextlib.contextmanager
def pair(stock: str, product: str) -> Iterator[Pair]:
    both = Pair(stock, product)
    try:
        yield both
    finally:
        both.close()
