"""Performance artifacts: how many replicas a rate of requests needs, and which hardware is worth
what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

from catalog.answers import Call
from catalog.generation import Generation
from mlcore.catalog.columns import PARTS
from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import DOUBLE, INT

T = TypeVar("T")

Candidate = tuple[float, float, int, T]
"""An artifact with its latency, what its hardware costs, and its id."""

PERFORMANCE: Final = "performance-metrics"
REPLICAS: Final = "replicas"
TOTAL: Final = "total_requests_per_second"

_GAIN: Final = 0.05
_FAST_GAIN: Final = 0.10
_FAST_MS: Final = 100.0
"""At so low a latency a gain must be greater."""


class Setting(NamedTuple):
    target: int | None
    """Requests a second; None where no rate is aimed at."""
    rate: str
    latency: str
    hardware_count: str
    hardware: str


def setting_of(call: Call) -> Setting:
    """A rate of 0 is none. Raises InvalidParameterValue."""
    arguments = call.arguments()
    return Setting(
        call.number("targetRPS", 0, 2**31 - 1) or None,
        arguments.get("rpsProperty", "requests_per_second"),
        arguments.get("latencyProperty", "ttft_p90"),
        arguments.get("hardwareCountProperty", "hardware_count"),
        arguments.get("hardwareTypeProperty", "hardware_type"),
    )


def performance(model: Entry, setting: Setting) -> list[Entry]:
    """The performance artifacts of a model, with replicas where a rate is aimed at."""
    found = [child for child in model.children if child.fields.get("metricsType") == PERFORMANCE]
    if setting.target is None:
        return found
    return [_replicated(child, setting.target, setting.rate) for child in found]


def _replicated(artifact: Entry, target: int, property_name: str) -> Entry:
    rate = _number(artifact, property_name)
    if not rate or rate < 0:
        return artifact
    replicas = math.ceil(target / rate)
    return artifact._replace(
        properties={**artifact.properties, REPLICAS: replicas, TOTAL: rate * replicas},
        types={**artifact.types, REPLICAS: INT, TOTAL: DOUBLE},
    )


def recommended(artifacts: Iterable[Entry], setting: Setting) -> list[Entry]:
    """Of each type of hardware the fastest, and each slower one that costs less than all faster
    ones, without those that are hardly faster than the next."""
    by_type: dict[str, list[Candidate[Entry]]] = {}
    for artifact in artifacts:
        latency = _number(artifact, setting.latency)
        if latency is not None:
            count, replicas = _number(artifact, setting.hardware_count), _number(artifact, REPLICAS)
            one = (latency, _cost(count, replicas), artifact.id, artifact)
            by_type.setdefault(str(artifact.properties.get(setting.hardware, "")), []).append(one)
    return [one[3] for hardware in sorted(by_type) for one in _worth(by_type[hardware])]


def _cost(count: float | None, replicas: float | None) -> float:
    return (1.0 if count is None else count) * (1.0 if replicas is None else replicas)


def _worth(candidates: list[Candidate[T]]) -> list[Candidate[T]]:
    """Of one type of hardware those that are cheaper than all faster ones; of these, from the
    cheapest on, a dearer one only if it is enough faster than the last that stayed."""
    if len(candidates) == 1:
        return candidates
    cheaper: list[Candidate[T]] = []
    least = math.inf
    for one in sorted(candidates, key=_in_order):
        if one[1] < least:
            cheaper.append(one)
            least = one[1]
    found: list[Candidate[T]] = []
    for one in reversed(cheaper):
        if found:
            last = found[-1][0]
            gain = (last - one[0]) / last if last else 0.0
            if gain < (_FAST_GAIN if last <= _FAST_MS else _GAIN):
                continue
        found.append(one)
    found.reverse()
    return found


def _in_order(one: Candidate[T]) -> tuple[float, float, int]:
    return one[:3]


def _number(artifact: Entry, name: str) -> float | None:
    value: Any = artifact.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


# ------------------------------------------------------------------ all models


def parts_of(read: Generation, setting: Setting) -> list[str]:
    """The parts of a generation that an order by recommendations is about."""
    names = (*(setting.rate, setting.latency, setting.hardware_count, setting.hardware, REPLICAS),)
    properties = [read.properties_part(name) for name in names]
    return [read.attribute_part(PARTS, "metricsType"), *properties]


def ordered(read: Generation, setting: Setting) -> list[int]:
    """Models by the least latency of what is recommended of each; those without any last."""
    owners = read.owners
    latencies = _numbers(read, setting.latency)
    counts = _numbers(read, setting.hardware_count)
    replicas = _numbers(read, REPLICAS)
    rates = _numbers(read, setting.rate) if setting.target is not None else {}
    hardware: dict[int, Any] = {}
    for column in read.custom(PARTS, setting.hardware).values():
        hardware.update(zip(column.at, column.values, strict=True))
    groups: dict[tuple[int, str], list[Candidate[None]]] = {}
    metrics = read.attribute(PARTS, "metricsType")
    for at, kind in zip(metrics.at, metrics.values, strict=True):
        if kind != PERFORMANCE or (latency := latencies.get(at)) is None:
            continue
        copies = replicas.get(at)
        if rates and (rate := rates.get(at, 0.0)) > 0:
            copies = math.ceil((setting.target or 0) / rate)
        one = (latency, _cost(counts.get(at), copies), at, None)
        place = (owners[at], str(hardware.get(at, "")))
        group = groups.get(place)
        if group is None:
            groups[place] = [one]
        else:
            group.append(one)
    best: dict[int, float] = {}
    for (owner, _), group in groups.items():
        # The first is the fastest that stays.
        latency = _worth(group)[0][0]
        if latency < best.get(owner, math.inf):
            best[owner] = latency
    # Models are in the order of their names, and Python's order is stable.
    return sorted(range(len(read.models["id"])), key=lambda at: best.get(at, math.inf))


def _numbers(read: Generation, name: str) -> dict[int, float]:
    found: dict[int, float] = {}
    columns = read.custom(PARTS, name)
    for kind in (INT, DOUBLE):
        if kind in columns:
            found.update(zip(columns[kind].at, columns[kind].values, strict=True))
    return found
