"""Performance artifacts: how many replicas a rate of requests needs, and which hardware is worth
what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from catalog.answers import Call
from catalog.generation import CANDIDATES, MODELS, Generation
from mlcore.catalog import candidates
from mlcore.catalog.candidates import (
    LEAST_RATE,
    PERFORMANCE,
    REPLICAS,
    Candidates,
    Gathering,
    Measured,
    Names,
    enough,
    measured,
    number,
)
from mlcore.catalog.columns import PARTS
from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import DOUBLE, INT

TOTAL: Final = "total_requests_per_second"

_USUAL: Final = Names()


class Setting(NamedTuple):
    target: int | None
    """Requests a second; None where no rate is aimed at."""
    names: Names


def setting_of(call: Call) -> Setting:
    """A rate of 0 is none. Raises InvalidParameterValue."""
    arguments = call.arguments()
    return Setting(
        call.number("targetRPS", 0, 2**31 - 1) or None,
        Names(
            arguments.get("rpsProperty", _USUAL.rate),
            arguments.get("latencyProperty", _USUAL.latency),
            arguments.get("hardwareCountProperty", _USUAL.hardware_count),
            arguments.get("hardwareTypeProperty", _USUAL.hardware),
        ),
    )


def performance(model: Entry, setting: Setting) -> list[Entry]:
    """The performance artifacts of a model, with replicas where a rate is aimed at."""
    found = [child for child in model.children if child.fields.get("metricsType") == PERFORMANCE]
    if setting.target is None:
        return found
    return [_replicated(child, setting.target, setting.names.rate) for child in found]


def _replicated(artifact: Entry, target: int, property_name: str) -> Entry:
    rate = number(artifact, property_name)
    if rate is None or rate < LEAST_RATE:
        return artifact
    replicas = math.ceil(target / rate)
    return artifact._replace(
        properties={**artifact.properties, REPLICAS: replicas, TOTAL: rate * replicas},
        types={**artifact.types, REPLICAS: INT, TOTAL: DOUBLE},
    )


def recommended(artifacts: Iterable[Entry], setting: Setting) -> list[Entry]:
    """Of each type of hardware the fastest, and each slower one that costs less than all faster
    ones, without those that are hardly faster than the next."""
    by_type: dict[str, list[_Priced]] = {}
    for artifact in artifacts:
        latency = number(artifact, setting.names.latency)
        if latency is not None:
            count = number(artifact, setting.names.hardware_count)
            replicas = number(artifact, REPLICAS)
            cost = (1.0 if count is None else count) * (1.0 if replicas is None else replicas)
            one = _Priced(latency, cost, artifact.id, artifact)
            hardware = str(artifact.properties.get(setting.names.hardware, ""))
            by_type.setdefault(hardware, []).append(one)
    return [one.artifact for hardware in sorted(by_type) for one in _worth(by_type[hardware])]


class _Priced(NamedTuple):
    latency: float
    cost: float
    id: int
    artifact: Entry


def _worth(artifacts: list[_Priced]) -> list[_Priced]:
    """Of one type of hardware those that are cheaper than all faster ones; of these, from the
    cheapest on, a dearer one only if it is enough faster than the last that stayed."""
    first, *others = sorted(artifacts, key=lambda one: one[:3])
    cheaper = [first]
    for one in others:
        if one.cost < cheaper[-1].cost:
            cheaper.append(one)
    found = [cheaper.pop()]
    while cheaper:
        one = cheaper.pop()
        if enough(one.latency, found[-1].latency):
            found.append(one)
    return found[::-1]


# ------------------------------------------------------------------ all models


def parts_of(read: Generation, setting: Setting) -> list[str]:
    """The parts of a generation that an order by recommendations is about."""
    if _are_stored(read, setting):
        return [MODELS, CANDIDATES]
    properties = [read.properties_part(name) for name in (*setting.names, REPLICAS)]
    return [MODELS, read.attribute_part(PARTS, "metricsType"), *properties]


def _are_stored(read: Generation, setting: Setting) -> bool:
    return setting.names == _USUAL and read.has(CANDIDATES)


def ordered(read: Generation, setting: Setting) -> list[int]:
    """Models by the least latency of what is recommended of each; those without any last."""
    if _are_stored(read, setting):
        found = read.candidates
    else:
        names = setting.names
        found = read.remembered(("candidates", names), lambda: _gathered(read, names))
    return candidates.ordered(found, setting.target, len(read.models["id"]))


def _gathered(read: Generation, names: Names) -> Candidates:
    """Those of properties for which none are stored."""
    latencies = _numbers(read, names.latency)
    counts, rates = _numbers(read, names.hardware_count), _numbers(read, names.rate)
    replicas = _numbers(read, REPLICAS)
    hardware: dict[int, Any] = {}
    for column in read.custom(PARTS, names.hardware).values():
        hardware.update(zip(column.at, column.values, strict=True))
    owners = read.owners
    models: dict[int, list[Measured]] = {}
    metrics = read.attribute(PARTS, "metricsType")
    for at, kind in zip(metrics.at, metrics.values, strict=True):
        if kind == PERFORMANCE and (latency := latencies.get(at)) is not None:
            one = measured(
                hardware.get(at), latency, counts.get(at), rates.get(at), replicas.get(at)
            )
            models.setdefault(owners[at], []).append(one)
    gathering = Gathering()
    for owner, artifacts in models.items():
        gathering.add(owner, artifacts)
    return gathering.candidates()


def _numbers(read: Generation, name: str) -> dict[int, float]:
    found: dict[int, float] = {}
    columns = read.custom(PARTS, name)
    for kind in (INT, DOUBLE):
        if kind in columns:
            found.update(zip(columns[kind].at, columns[kind].values, strict=True))
    return found
