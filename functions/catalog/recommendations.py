"""Performance artifacts: how many replicas a rate of requests needs, and which hardware is worth
what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from catalog.answers import Call
from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import DOUBLE, INT

PERFORMANCE: Final = "performance-metrics"
REPLICAS: Final = "replicas"
TOTAL: Final = "total_requests_per_second"

_GAIN: Final = 0.05
_FAST_GAIN: Final = 0.10
_FAST_MS: Final = 100.0
"""At so low a latency a gain must be greater."""


class Setting(NamedTuple):
    target: int | None
    """Requests a second."""
    rate: str
    latency: str
    hardware_count: str
    hardware: str


def setting_of(call: Call) -> Setting:
    """Raises InvalidParameterValue."""
    arguments = call.arguments()
    return Setting(
        call.number("targetRPS", 1, 2**31 - 1),
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
    by_type: dict[str, list[Entry]] = {}
    for artifact in artifacts:
        if _number(artifact, setting.latency) is not None:
            by_type.setdefault(str(artifact.properties.get(setting.hardware, "")), []).append(
                artifact
            )
    found = []
    for hardware in sorted(by_type):
        found += _worth(_cheaper(by_type[hardware], setting), setting)
    return found


def _cheaper(artifacts: Sequence[Entry], setting: Setting) -> list[Entry]:
    in_order = sorted(
        artifacts, key=lambda one: (_number(one, setting.latency), _cost(one, setting), one.id)
    )
    found: list[Entry] = []
    least = math.inf
    for artifact in in_order:
        cost = _cost(artifact, setting)
        if cost < least:
            found.append(artifact)
            least = cost
    return found


def _worth(artifacts: Sequence[Entry], setting: Setting) -> list[Entry]:
    """From the cheapest on: a dearer one stays if it is enough faster than the last that stayed."""
    found: list[Entry] = []
    for artifact in reversed(artifacts):
        latency = _number(artifact, setting.latency) or 0.0
        if found:
            last = _number(found[-1], setting.latency) or 0.0
            gain = (last - latency) / last if last else 0.0
            if gain < (_FAST_GAIN if last <= _FAST_MS else _GAIN):
                continue
        found.append(artifact)
    found.reverse()
    return found


def _cost(artifact: Entry, setting: Setting) -> float:
    count = _number(artifact, setting.hardware_count)
    replicas = _number(artifact, REPLICAS)
    return (1.0 if count is None else count) * (1.0 if replicas is None else replicas)


def ordered(models: Iterable[Entry], setting: Setting) -> list[Entry]:
    """Models by the least latency of what is recommended of each; those without any last."""

    def place(model: Entry) -> tuple[float, str, int]:
        found = recommended(performance(model, setting), setting)
        latencies = [_number(one, setting.latency) or 0.0 for one in found]
        return min(latencies, default=math.inf), model.name, model.id

    return sorted(models, key=place)


def _number(artifact: Entry, name: str) -> float | None:
    value: Any = artifact.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
