"""What a request is said to cost: calls one after another add up, the longest of parallel ones
counts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mlcore.db import capacity, table


def answer(units: float) -> dict[str, Any]:
    return {"ConsumedCapacity": {"CapacityUnits": units}}


def figures(measured: capacity.Measurement) -> tuple[int, int, float, float]:
    return measured.requests, measured.round_trips, measured.read_units, measured.write_units


def test_reads_and_writes_add_up() -> None:
    with capacity.measure() as measured:
        capacity.add_call(capacity.current(), "GetItem", answer(0.5))
        batch = {"ConsumedCapacity": [{"CapacityUnits": 1.5}, {"CapacityUnits": 2}]}
        capacity.add_call(capacity.current(), "BatchWriteItem", batch)
        capacity.add_call(capacity.current(), "Query", {})
    assert figures(measured) == (3, 3, 0.5, 3.5)
    assert capacity.last_measurement() is measured
    assert capacity.current() is None


def test_the_fullest_partition_counts() -> None:
    def size_estimate(key: str, least: float) -> dict[str, Any]:
        return {"ItemCollectionKey": {"PK": {"S": key}}, "SizeEstimateRangeGB": [least, least + 1]}

    here = table.Table()
    with capacity.measure() as measured:
        single = {"ItemCollectionMetrics": size_estimate("one", 2.0)}
        capacity.add_call(capacity.current(), "UpdateItem", single)
        many = {
            "ItemCollectionMetrics": {
                "t": [size_estimate("small", 0.0), size_estimate("large", 7.0)]
            }
        }
        calls = [
            lambda: capacity.add_call(capacity.current(), "TransactWriteItems", many),
            lambda: capacity.add_call(capacity.current(), "Query", answer(1)),
        ]
        here.parallel(calls)
    assert measured.largest == (7.0, "large")


def test_outside_of_a_measurement_nothing_is_counted() -> None:
    capacity.add_call(capacity.current(), "GetItem", answer(1))
    assert capacity.current() is None


def test_parallel_calls_are_as_long_as_the_longest() -> None:
    here = table.Table()

    def calls(number: int) -> None:
        for _ in range(number):
            capacity.add_call(capacity.current(), "Query", answer(1))

    with capacity.measure() as measured:
        calls(1)
        here.parallel([lambda: calls(3), lambda: calls(5), lambda: calls(2)])
    assert figures(measured) == (11, 6, 11.0, 0.0)


def test_parallel_inside_parallel_runs_in_its_branch() -> None:
    here = table.Table()
    strangers: list[int] = []

    def outer() -> None:
        own = threading.get_ident()

        def inner() -> None:
            capacity.add_call(capacity.current(), "Query", answer(1))
            if threading.get_ident() != own:
                strangers.append(own)

        here.parallel([inner, inner])

    with capacity.measure() as measured:
        here.parallel([outer, outer, outer])
    assert figures(measured) == (6, 2, 6.0, 0.0)
    assert strangers == []


def test_failures_are_counted_and_all_calls_end() -> None:
    here = table.Table()
    ended: list[str] = []

    def fail() -> None:
        capacity.add_call(capacity.current(), "Query", {})
        raise KeyError("wanted")

    def succeed() -> None:
        capacity.add_call(capacity.current(), "Query", {})
        ended.append("succeed")

    with capacity.measure() as measured, pytest.raises(KeyError):
        here.parallel([succeed, fail, succeed])
    assert ended == ["succeed", "succeed"]
    assert figures(measured)[:2] == (3, 1)
    with capacity.measure() as measured, pytest.raises(KeyError):
        here.parallel([fail, succeed])
    assert ended == ["succeed"] * 3
    assert here.parallel([]) == []
