"""Measures what one request costs in DynamoDB: calls, sequential round trips and capacity units.
Also records whether the request may have written.

Each thread counts into its current :class:`Measurement`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")

READS = {"GetItem", "BatchGetItem", "Query"}


class Measurement:
    """The cost of the DynamoDB calls made so far. Of parallel branches, ``round_trips`` counts only
    the longest.

    ``largest`` is the size in gigabytes (DynamoDB's lower estimate) and the key of the largest
    partition that was written to. It is measured only if the setting ``collection_sizes`` is on.

    ``may_have_written`` is False as long as no call that writes was executed. A call whose answer
    was lost counts as executed.
    """

    __slots__ = (
        "largest",
        "may_have_written",
        "read_units",
        "requests",
        "round_trips",
        "write_units",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.round_trips = 0
        self.read_units = 0.0
        self.write_units = 0.0
        self.largest: tuple[float, str] = (0.0, "")
        self.may_have_written = False


_thread = threading.local()


def current() -> Measurement | None:
    """Returns the measurement of DynamoDB costs into which this thread counts; None if it counts
    nowhere."""
    measurement: Measurement | None = getattr(_thread, "measurement", None)
    return measurement


def last_measurement() -> Measurement | None:
    """Returns the last measurement of DynamoDB costs that this thread has finished; None if there
    was none."""
    measurement: Measurement | None = getattr(_thread, "last", None)
    return measurement


@contextmanager
def measure() -> Iterator[Measurement]:
    """Starts a measurement of this thread's DynamoDB calls and yields it. The outer measurement, if
    any, pauses meanwhile."""
    measurement = Measurement()
    outer = current()
    _thread.measurement = measurement
    try:
        yield measurement
    finally:
        _thread.measurement = outer
        _thread.last = measurement


@contextmanager
def writing_for_itself() -> Iterator[None]:
    """Within this context, writes do not set ``may_have_written``; calls and units are counted as
    usual. Use it for writes that the server makes for itself, such as a counter, and that do not
    execute the request: a client may still repeat the request."""
    measurement = current()
    may_have_written = measurement is not None and measurement.may_have_written
    try:
        yield
    finally:
        if measurement is not None:
            measurement.may_have_written = may_have_written


def add_call(measurement: Measurement | None, operation: str, answer: dict[str, Any]) -> None:
    """Adds one finished call to a measurement of DynamoDB costs. ``answer`` is DynamoDB's answer
    with the consumed capacity."""
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
        measurement.may_have_written = True
    if "ItemCollectionMetrics" in answer:
        sizes = _sizes(answer["ItemCollectionMetrics"])
        measurement.largest = max((measurement.largest, *sizes))


def add_failure(measurement: Measurement | None, operation: str, *, may_have_written: bool) -> None:
    """Adds one failed call to a measurement of DynamoDB costs.

    Args:
        may_have_written: whether a call that writes may have been executed.
    """
    if measurement is None:
        return
    measurement.requests += 1
    measurement.round_trips += 1
    if may_have_written and operation not in READS:
        measurement.may_have_written = True


def _sizes(metrics: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Yields (gigabytes, partition key) of each partition in DynamoDB's ``ItemCollectionMetrics``
    of one item, batch or transaction."""
    for each in (
        [metrics] if "ItemCollectionKey" in metrics else chain.from_iterable(metrics.values())
    ):
        yield each["SizeEstimateRangeGB"][0], each["ItemCollectionKey"]["PK"]["S"]


@contextmanager
def side_by_side(measurement: Measurement | None, count: int) -> Iterator[list[Measurement]]:
    """Yields a new measurement of DynamoDB calls for each of ``count`` parallel branches of a
    request, and adds them to the request's ``measurement`` at the end.

    Calls and units are summed. Of the round trips only the largest number is added, because the
    branches run at the same time.
    """
    branches = [Measurement() for _ in range(count)]
    try:
        yield branches
    finally:
        if measurement is not None:
            measurement.requests += sum(branch.requests for branch in branches)
            measurement.round_trips += max(branch.round_trips for branch in branches)
            measurement.read_units += sum(branch.read_units for branch in branches)
            measurement.write_units += sum(branch.write_units for branch in branches)
            measurement.largest = max(
                (measurement.largest, *(branch.largest for branch in branches))
            )
            if any(branch.may_have_written for branch in branches):
                measurement.may_have_written = True


def run_branch(branch: Measurement, call: Callable[[], T]) -> T:
    """Runs ``call`` and counts its DynamoDB requests in ``branch``, the measurement of a parallel
    branch of a request, instead of in the measurement of this thread."""
    outer = current()
    _thread.measurement, _thread.in_branch = branch, True
    try:
        return call()
    finally:
        _thread.measurement, _thread.in_branch = outer, False


def run_in_turn(measurement: Measurement | None, calls: Sequence[Callable[[], T]]) -> list[T]:
    """Runs calls one after the other and returns their results. Counts their DynamoDB requests in
    ``measurement`` as if they ran in parallel.

    The first failure is raised after all calls have ended.
    """
    results: list[T] = []
    failure: BaseException | None = None
    with side_by_side(measurement, len(calls)) as branches:
        for branch, call in zip(branches, calls, strict=True):
            try:
                results.append(run_branch(branch, call))
            except BaseException as error:  # raised below, as by parallel calls
                failure = failure or error
    if failure is not None:
        raise failure
    return results


def in_branch() -> bool:
    """Returns whether this thread runs one of several function calls whose DynamoDB requests are
    counted as parallel."""
    return getattr(_thread, "in_branch", False)
