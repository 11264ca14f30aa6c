"""The performance artifacts of models as an order by recommendations weighs them: of each type of
hardware those that some rate of requests may make worth their price, the fastest first.

The loader writes those of the properties that most requests are about; for others they are made
of the columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.catalog.entry import Entry

PERFORMANCE: Final = "performance-metrics"
REPLICAS: Final = "replicas"

LEAST_RATE: Final = 1e-6
"""Requests a second: less than that is no rate."""

_GAIN: Final = 0.05
_FAST_GAIN: Final = 0.10
_FAST_MS: Final = 100.0
"""At so low a latency a gain must be greater."""


class Names(NamedTuple):
    """The custom properties of artifacts that recommendations are about."""

    rate: str = "requests_per_second"
    latency: str = "ttft_p90"
    hardware_count: str = "hardware_count"
    hardware: str = "hardware_type"


class Measured(NamedTuple):
    """What an artifact says."""

    hardware: str
    latency: float
    amount: float
    """Of the hardware; 1 where it does not say."""
    rate: float
    """That one replica serves; 0 where it does not say."""
    replicas: float
    """1 where it does not say."""


class Candidates(NamedTuple):
    """Groups of artifacts, each of a model and a type of hardware, one after the other."""

    owners: Sequence[int]
    """By group: the place of its model. The groups of a model are side by side."""
    sizes: Sequence[int]
    """By group."""
    latencies: Sequence[float]
    """By artifact, as all that follow; ascending within a group."""
    counts: Sequence[float]
    rates: Sequence[float]
    fixed: Sequence[float] | None
    """What an artifact costs where no rate is aimed at, or it has none; None: as ``counts``."""


class Gathering:
    """Candidates while they are found, model by model."""

    def __init__(self) -> None:
        self._owners: list[int] = []
        self._sizes: list[int] = []
        self._kept: list[Measured] = []

    def add(self, owner: int, artifacts: Iterable[Measured]) -> None:
        """Those of the next model that has any, in the order of their ids."""
        groups: dict[str, list[Measured]] = {}
        for one in artifacts:
            groups.setdefault(one.hardware, []).append(one)
        for group in groups.values():
            kept: list[Measured] = []
            for one in sorted(group, key=_latency):
                if not any(_never_dearer(faster, one) for faster in kept):
                    kept.append(one)
            self._owners.append(owner)
            self._sizes.append(len(kept))
            self._kept += kept

    def candidates(self) -> Candidates:
        kept = self._kept
        counts = [one.amount for one in kept]
        fixed = [_fixed(one) for one in kept]
        return Candidates(
            self._owners,
            self._sizes,
            [one.latency for one in kept],
            counts,
            [one.rate for one in kept],
            None if fixed == counts else fixed,
        )


def _latency(one: Measured) -> float:
    return one.latency


def _fixed(one: Measured) -> float:
    return one.amount * one.replicas


def _never_dearer(faster: Measured, one: Measured) -> bool:
    """Whether a faster artifact costs no more, whatever rate is aimed at: then the other is never
    worth its price."""
    if _fixed(faster) > _fixed(one):
        return False
    if not faster.rate:
        return not one.rate or 0 <= _fixed(faster) <= one.amount
    return faster.rate >= one.rate > 0 and 0 <= faster.amount <= one.amount


def of_model(model: Entry, names: Names) -> list[Measured]:
    """What the performance artifacts of a model say."""
    found = []
    for child in model.children:
        if child.fields.get("metricsType") != PERFORMANCE:
            continue
        latency = number(child, names.latency)
        if latency is not None:
            found.append(
                measured(
                    child.properties.get(names.hardware),
                    latency,
                    number(child, names.hardware_count),
                    number(child, names.rate),
                    number(child, REPLICAS),
                )
            )
    return found


def measured(
    hardware: Any,
    latency: float,
    count: float | None,
    rate: float | None,
    replicas: float | None,
) -> Measured:
    """What an artifact says, None where it says nothing."""
    return Measured(
        "" if hardware is None else str(hardware),
        latency,
        1.0 if count is None else count,
        rate if rate is not None and rate >= LEAST_RATE else 0.0,
        1.0 if replicas is None else replicas,
    )


def number(artifact: Entry, name: str) -> float | None:
    """The value of a property that is a number."""
    value: Any = artifact.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def stored(found: Candidates) -> str:
    """JSON, in which whole numbers are written as such: they are read sooner."""
    owners, sizes, *values = found
    numbers = [None if each is None else [*map(_short, each)] for each in values]
    return json.dumps([owners, sizes, *numbers], separators=(",", ":"))


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def of_stored(data: Sequence[Any]) -> Candidates:
    return Candidates(*data)


def enough(latency: float, slower: float) -> bool:
    """Whether an artifact is so much faster than one that costs less that both are worth it."""
    gain = (slower - latency) / slower if slower else 0.0
    return gain >= (_FAST_GAIN if slower <= _FAST_MS else _GAIN)


def ordered(found: Candidates, target: int | None, models: int) -> list[int]:
    """The places of so many models by the least latency of what is recommended of each; those
    without any last.

    Args:
        target: requests a second; None where no rate is aimed at.
    """
    fixed = found.counts if found.fixed is None else found.fixed
    costs: Sequence[float] = fixed
    if target is not None:
        ceil = math.ceil
        costs = [
            count * ceil(target / rate) if rate else other
            for count, rate, other in zip(found.counts, found.rates, fixed, strict=True)
        ]
    latencies = found.latencies
    best = [math.inf] * models
    at = 0
    for owner, size in zip(found.owners, found.sizes, strict=True):
        end = at + size
        latency = latencies[at]
        # What stays is not faster than the first of its group.
        if latency < best[owner]:
            if size > 1:
                latency = _fastest(latencies, costs, at, end)
            best[owner] = min(best[owner], latency)
        at = end
    # Models are in the order of their names, and Python's order is stable.
    return sorted(range(models), key=best.__getitem__)


def _fastest(latencies: Sequence[float], costs: Sequence[float], at: int, end: int) -> float:
    """Of a group the least latency of what stays: of the artifacts that are cheaper than all faster
    ones, from the cheapest on, a dearer one if it is enough faster than the last that stayed."""
    least = costs[at]
    cheaper = [latencies[at]]
    for place in range(at + 1, end):
        if costs[place] < least:
            least = costs[place]
            cheaper.append(latencies[place])
    last = cheaper.pop()
    while cheaper:
        one = cheaper.pop()
        if enough(one, last):
            last = one
    return last
