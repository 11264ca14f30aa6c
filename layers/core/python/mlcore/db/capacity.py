"""Counts requests, sequential round trips and capacity units of the calls that one request
makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")

READS = {"GetItem", "BatchGetItem", "Query"}


class Measurement:
    """What the calls so far cost. ``round_trips`` counts calls that waited for one another.

    ``largest`` is the fullest partition that was written to, as gigabytes (at least; DynamoDB
    estimates) and key. It is told only where the settings ask for it.
    """

    __slots__ = ("largest", "read_units", "requests", "round_trips", "write_units")

    def __init__(self) -> None:
        self.requests = 0
        self.round_trips = 0
        self.read_units = 0.0
        self.write_units = 0.0
        self.largest: tuple[float, str] = (0.0, "")


_thread = threading.local()


def current() -> Measurement | None:
    measurement: Measurement | None = getattr(_thread, "measurement", None)
    return measurement


def last() -> Measurement | None:
    measurement: Measurement | None = getattr(_thread, "last", None)
    return measurement


@contextmanager
def measure() -> Iterator[Measurement]:
    measurement = Measurement()
    outer = current()
    _thread.measurement = measurement
    try:
        yield measurement
    finally:
        _thread.measurement = outer
        _thread.last = measurement


def add(measurement: Measurement | None, operation: str, answer: dict[str, Any]) -> None:
    """Adds one finished call; the answer tells its capacity."""
    if measurement is None:
        return
    measurement.requests += 1
    measurement.round_trips += 1
    consumed = answer.get("ConsumedCapacity") or ()
    units = sum(
        part.get("CapacityUnits", 0.0)
        for part in (consumed if isinstance(consumed, list | tuple) else (consumed,))
    )
    if operation in READS:
        measurement.read_units += units
    else:
        measurement.write_units += units
    if "ItemCollectionMetrics" in answer:
        told = _sizes(answer["ItemCollectionMetrics"])
        measurement.largest = max((measurement.largest, *told))


def _sizes(metrics: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Of one item, or of the items of a batch or transaction by table."""
    for each in (
        [metrics] if "ItemCollectionKey" in metrics else chain.from_iterable(metrics.values())
    ):
        yield each["SizeEstimateRangeGB"][0], each["ItemCollectionKey"]["PK"]["S"]


@contextmanager
def side_by_side(measurement: Measurement | None, count: int) -> Iterator[list[Measurement]]:
    """One measurement for each parallel branch; at the end their sums are added, and their longest
    chain."""
    branches = [Measurement() for _ in range(count)]
    try:
        yield branches
    finally:
        if measurement is not None:
            measurement.requests += sum(branch.requests for branch in branches)
            measurement.round_trips += max(branch.round_trips for branch in branches)
            measurement.read_units += sum(branch.read_units for branch in branches)
            measurement.write_units += sum(branch.write_units for branch in branches)
            measurement.largest = max((measurement.largest, *(one.largest for one in branches)))


def run(branch: Measurement, call: Callable[[], T]) -> T:
    """Runs a call of a parallel branch with the branch's measurement in place."""
    outer = current()
    _thread.measurement, _thread.in_branch = branch, True
    try:
        return call()
    finally:
        _thread.measurement, _thread.in_branch = outer, False


def in_branch() -> bool:
    """Whether this thread runs a branch of parallel calls."""
    return getattr(_thread, "in_branch", False)
