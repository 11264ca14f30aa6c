"""Recommends performance artifacts (measurements of a model on some hardware). For each model and
type of hardware, the *candidates* are the artifacts, fastest first, for which no faster one needs
as few units of the hardware at every request rate.

The catalog loader stores the candidates for the property names that most requests use. For other
names a request computes them from the values of the properties (:mod:`.property_columns`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.catalog.entry import CatalogEntry

PERFORMANCE: Final = "performance-metrics"
REPLICAS: Final = "replicas"

LEAST_RATE: Final = 1e-6
"""Requests per second; a smaller value counts as no rate."""

_MIN_GAIN: Final = 0.05
_MIN_GAIN_IF_FAST: Final = 0.10
_FAST_MS: Final = 100.0
"""Up to this latency in milliseconds, the minimum gain is :data:`_MIN_GAIN_IF_FAST`."""


class PropertyNames(NamedTuple):
    """Names of the custom properties with the measurements of a catalog's performance artifact."""

    rate: str = "requests_per_second"
    latency: str = "ttft_p90"
    hardware_count: str = "hardware_count"
    hardware: str = "hardware_type"


class Measurement(NamedTuple):
    """The measurements in one performance artifact of a model in the model catalog."""

    hardware: str
    latency: float
    amount: float
    """How many units of the hardware (accelerators) are used; 1 if not given."""
    rate: float
    """Requests per second of one replica; 0 if not given."""
    replicas: float
    """How many replicas were measured; 1 if not given."""


class Candidates(NamedTuple):
    """The performance artifacts (benchmarks of a catalog's models) that can be recommended. A group
    has those of one model and one type of hardware. The groups follow one another in parallel
    arrays: ``owners`` has each group's model, ``sizes`` its number of artifacts."""

    owners: Sequence[int]
    """By group: the index of its model. The groups of a model are adjacent."""
    sizes: Sequence[int]
    """By group: its number of artifacts."""
    latencies: Sequence[float]
    """By artifact, like the fields below; ascending within a group."""
    counts: Sequence[float]
    rates: Sequence[float]
    fixed: Sequence[float] | None
    """The cost of an artifact if no target rate is requested, or if its own rate is unknown. None:
    it is equal to ``counts``."""


class CandidateCollector:
    """Chooses the *candidates* among each catalog model's performance artifacts: those for which no
    faster artifact on the same type of hardware needs as few units of it at every request rate."""

    def __init__(self) -> None:
        self._owners: list[int] = []
        self._sizes: list[int] = []
        self._kept: list[Measurement] = []

    def add(self, owner: int, artifacts: Iterable[Measurement]) -> None:
        """Chooses the candidates among the performance artifacts of one model and adds them.

        Args:
            owner: the model's index.
            artifacts: in the order of their ids, which decides between equal artifacts.
        """
        groups: dict[str, list[Measurement]] = {}
        for artifact in artifacts:
            groups.setdefault(artifact.hardware, []).append(artifact)
        for group in groups.values():
            kept: list[Measurement] = []
            for artifact in sorted(group, key=_latency):
                if not any(_never_dearer(other, artifact) for other in kept):
                    kept.append(artifact)
            self._owners.append(owner)
            self._sizes.append(len(kept))
            self._kept += kept

    def candidates(self) -> Candidates:
        kept = self._kept
        counts = [artifact.amount for artifact in kept]
        fixed = [_fixed_cost(artifact) for artifact in kept]
        return Candidates(
            self._owners,
            self._sizes,
            [artifact.latency for artifact in kept],
            counts,
            [artifact.rate for artifact in kept],
            None if fixed == counts else fixed,
        )


def _latency(artifact: Measurement) -> float:
    return artifact.latency


def _fixed_cost(artifact: Measurement) -> float:
    return artifact.amount * artifact.replicas


def _never_dearer(faster: Measurement, other: Measurement) -> bool:
    """Whether the faster of two artifacts costs no more at any request rate, so that the other one
    is never worth its price."""
    if _fixed_cost(faster) > _fixed_cost(other):
        return False
    if not faster.rate:
        return not other.rate or 0 <= _fixed_cost(faster) <= other.amount
    return faster.rate >= other.rate > 0 and 0 <= faster.amount <= other.amount


def of_model(model: CatalogEntry, names: PropertyNames) -> list[Measurement]:
    """Returns the measurements in a catalog model's performance artifacts that state a latency."""
    measurements = []
    for child in model.children:
        if child.fields.get("metricsType") != PERFORMANCE:
            continue
        latency = number(child, names.latency)
        if latency is not None:
            measurements.append(
                measurement(
                    child.properties.get(names.hardware),
                    latency,
                    number(child, names.hardware_count),
                    number(child, names.rate),
                    number(child, REPLICAS),
                )
            )
    return measurements


def measurement(
    hardware: Any,
    latency: float,
    count: float | None,
    rate: float | None,
    replicas: float | None,
) -> Measurement:
    """Returns the measurement of a catalog model's speed that a performance artifact holds. None
    stands for a value that the artifact lacks: then it is one accelerator (``count``), one replica,
    no request rate and no hardware type."""
    return Measurement(
        "" if hardware is None else str(hardware),
        latency,
        1.0 if count is None else count,
        rate if rate is not None and rate >= LEAST_RATE else 0.0,
        1.0 if replicas is None else replicas,
    )


def number(artifact: CatalogEntry, name: str) -> float | None:
    """Returns a custom property of a model catalog's artifact; None if it is not a number."""
    value: Any = artifact.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def stored(candidates: Candidates) -> str:
    """Returns the performance artifacts that the model catalog may recommend (*candidates*, of all
    models) as the JSON text that the catalog stores. Whole numbers are written as integers, which
    parse faster."""
    owners, sizes, *values = candidates
    numbers = [None if array is None else [*map(_short, array)] for array in values]
    return json.dumps([owners, sizes, *numbers], separators=(",", ":"))


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def of_stored(data: Sequence[Any]) -> Candidates:
    return Candidates(*data)


def is_enough_faster(latency: float, slower: float) -> bool:
    """Whether a catalog model's artifact is so much faster than a cheaper one that it is
    recommended besides it. Latencies are in milliseconds."""
    gain = (slower - latency) / slower if slower else 0.0
    return gain >= (_MIN_GAIN_IF_FAST if slower <= _FAST_MS else _MIN_GAIN)


def model_order(candidates: Candidates, target: int | None, models: int) -> list[int]:
    """Returns the positions of all models of the catalog's list, ordered by the least latency among
    each model's artifacts that are recommended for the target rate. Models without such artifacts
    come last.

    Args:
        target: requests per second; None without a target rate.
        models: the number of models.
    """
    fixed = candidates.counts if candidates.fixed is None else candidates.fixed
    costs: Sequence[float] = fixed
    if target is not None:
        ceil = math.ceil
        costs = [
            count * ceil(target / rate) if rate else other
            for count, rate, other in zip(candidates.counts, candidates.rates, fixed, strict=True)
        ]
    latencies = candidates.latencies
    best = [math.inf] * models
    start = 0
    for owner, size in zip(candidates.owners, candidates.sizes, strict=True):
        end = start + size
        latency = latencies[start]
        # No recommended artifact is faster than the first of its group.
        if latency < best[owner]:
            if size > 1:
                latency = _fastest(latencies, costs, start, end)
            best[owner] = min(best[owner], latency)
        start = end
    # Models are in the order of their names, and Python's order is stable.
    return sorted(range(models), key=best.__getitem__)


def _fastest(latencies: Sequence[float], costs: Sequence[float], start: int, end: int) -> float:
    """Returns the least latency among the recommended artifacts of a group, which are chosen from
    those cheaper than all faster ones. Beginning with the cheapest, the next dearer one is
    recommended if it is enough faster than the last recommended one."""
    least = costs[start]
    cheaper = [latencies[start]]
    for index in range(start + 1, end):
        if costs[index] < least:
            least = costs[index]
            cheaper.append(latencies[index])
    last = cheaper.pop()
    while cheaper:
        latency = cheaper.pop()
        if is_enough_faster(latency, last):
            last = latency
    return last
