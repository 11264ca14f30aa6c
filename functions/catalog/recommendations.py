"""Recommends performance artifacts (benchmarks of a model on some hardware): computes how many
replicas a target rate of requests needs, and selects for each type of hardware the artifacts that
are worth their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from catalog.calls import CatalogCall
from catalog.generations import CANDIDATES, MODELS, Generation
from mlcore.catalog import performance_candidates
from mlcore.catalog.entry import CatalogEntry
from mlcore.catalog.performance_candidates import (
    LEAST_RATE,
    PERFORMANCE,
    REPLICAS,
    CandidateCollector,
    Candidates,
    Measurement,
    PropertyNames,
    is_enough_faster,
    measurement,
    number,
)
from mlcore.catalog.property_columns import ARTIFACT_LEVEL
from mlcore.search.kubeflow_filter import DOUBLE, INT

TOTAL_RATE: Final = "total_requests_per_second"

_DEFAULT_NAMES: Final = PropertyNames()


class Setting(NamedTuple):
    target: int | None
    """Requests per second; None without a target."""
    names: PropertyNames
    """The custom properties with the request rate, the latency, the hardware count and the hardware
    type."""


def parse_setting(call: CatalogCall) -> Setting:
    """Returns how a request wants a catalog model's performance artifacts to be recommended: the
    target rate of requests and the names of the properties to compare. A ``targetRPS`` of 0 counts
    as no target. Raises InvalidParameterValue if the rate is invalid."""
    arguments = call.arguments()
    return Setting(
        call.number("targetRPS", 0, 2**31 - 1) or None,
        PropertyNames(
            arguments.get("rpsProperty", _DEFAULT_NAMES.rate),
            arguments.get("latencyProperty", _DEFAULT_NAMES.latency),
            arguments.get("hardwareCountProperty", _DEFAULT_NAMES.hardware_count),
            arguments.get("hardwareTypeProperty", _DEFAULT_NAMES.hardware),
        ),
    )


def performance_artifacts(model: CatalogEntry, setting: Setting) -> list[CatalogEntry]:
    """Returns the performance artifacts of a model of the catalog. With a target rate, each that
    has a rate of its own (at least ``LEAST_RATE``) gets, as custom properties, the number of
    replicas that the target rate needs and the total rate of these replicas."""
    artifacts = [
        child for child in model.children if child.fields.get("metricsType") == PERFORMANCE
    ]
    if setting.target is None:
        return artifacts
    return [_with_replicas(child, setting.target, setting.names.rate) for child in artifacts]


def _with_replicas(artifact: CatalogEntry, target: int, property_name: str) -> CatalogEntry:
    rate = number(artifact, property_name)
    if rate is None or rate < LEAST_RATE:
        return artifact
    replicas = math.ceil(target / rate)
    return artifact._replace(
        properties={**artifact.properties, REPLICAS: replicas, TOTAL_RATE: rate * replicas},
        types={**artifact.types, REPLICAS: INT, TOTAL_RATE: DOUBLE},
    )


def recommend(artifacts: Iterable[CatalogEntry], setting: Setting) -> list[CatalogEntry]:
    """Returns the recommended ones of a catalog model's performance artifacts (each a measurement
    of the model on some hardware), by hardware type, then by latency. Artifacts without a latency
    are never recommended.

    For each type of hardware these are the artifacts that cost less than all others that are at
    least as fast (of equal ones, the one with the least id), without those that are hardly faster
    than the next cheaper recommended one (:func:`is_enough_faster`)."""
    by_type: dict[str, list[_Priced]] = {}
    for artifact in artifacts:
        latency = number(artifact, setting.names.latency)
        if latency is not None:
            count = number(artifact, setting.names.hardware_count)
            replicas = number(artifact, REPLICAS)
            cost = (1.0 if count is None else count) * (1.0 if replicas is None else replicas)
            priced = _Priced(latency, cost, artifact.id, artifact)
            hardware = str(artifact.properties.get(setting.names.hardware, ""))
            by_type.setdefault(hardware, []).append(priced)
    return [
        priced.artifact
        for hardware in sorted(by_type)
        for priced in _worth_their_cost(by_type[hardware])
    ]


class _Priced(NamedTuple):
    latency: float
    cost: float
    id: int
    artifact: CatalogEntry


def _worth_their_cost(artifacts: list[_Priced]) -> list[_Priced]:
    """Selects from artifacts of one type of hardware. Returns them ordered by latency.

    The first pass goes by latency, then cost, then id, and keeps each artifact that costs less than
    all before it. The second pass begins with the cheapest of these, and adds a more expensive one
    only if it is enough faster than the one that was added before."""
    first, *others = sorted(artifacts, key=lambda artifact: artifact[:3])
    cheaper = [first]
    for artifact in others:
        if artifact.cost < cheaper[-1].cost:
            cheaper.append(artifact)
    selected = [cheaper.pop()]
    while cheaper:
        artifact = cheaper.pop()
        if is_enough_faster(artifact.latency, selected[-1].latency):
            selected.append(artifact)
    return selected[::-1]


# ------------------------------------------------------------------ all models


def required_parts(generation: Generation, setting: Setting) -> list[str]:
    """Returns the names of the stored parts of the model catalog that :func:`sort_models` reads, so
    that they can be fetched together first."""
    if _uses_stored_candidates(setting):
        return [MODELS, CANDIDATES]
    properties = [generation.properties_part(name) for name in (*setting.names, REPLICAS)]
    return [MODELS, generation.attribute_part(ARTIFACT_LEVEL, "metricsType"), *properties]


def _uses_stored_candidates(setting: Setting) -> bool:
    """Whether the stored candidates can be used: the loader stores them for the default property
    names only."""
    return setting.names == _DEFAULT_NAMES


def sort_models(generation: Generation, setting: Setting) -> list[int]:
    """Returns the positions of all models of the catalog, ordered by the lowest latency among each
    model's recommended artifacts. Models without recommended artifacts come last."""
    if _uses_stored_candidates(setting):
        weighed = generation.candidates
    else:
        names = setting.names
        weighed = generation.cached(
            ("candidates", names), lambda: _compute_candidates(generation, names)
        )
    return performance_candidates.model_order(weighed, setting.target, len(generation.models["id"]))


def _compute_candidates(generation: Generation, names: PropertyNames) -> Candidates:
    """Returns the candidates for other than the default property names, from the columns."""
    latencies = _numbers(generation, names.latency)
    counts, rates = _numbers(generation, names.hardware_count), _numbers(generation, names.rate)
    replicas = _numbers(generation, REPLICAS)
    hardware: dict[int, Any] = {}
    for column in generation.custom_values(ARTIFACT_LEVEL, names.hardware).values():
        hardware.update(zip(column.at, column.values, strict=True))
    owners = generation.owners
    models: dict[int, list[Measurement]] = {}
    metrics = generation.attribute_values(ARTIFACT_LEVEL, "metricsType")
    for at, kind in zip(metrics.at, metrics.values, strict=True):
        if kind == PERFORMANCE and (latency := latencies.get(at)) is not None:
            measured = measurement(
                hardware.get(at), latency, counts.get(at), rates.get(at), replicas.get(at)
            )
            models.setdefault(owners[at], []).append(measured)
    collector = CandidateCollector()
    for owner, artifacts in models.items():
        collector.add(owner, artifacts)
    return collector.candidates()


def _numbers(generation: Generation, name: str) -> dict[int, float]:
    """Returns the numbers that artifacts have as a custom property, by the artifact's position."""
    numbers: dict[int, float] = {}
    columns = generation.custom_values(ARTIFACT_LEVEL, name)
    for kind in (INT, DOUBLE):
        if kind in columns:
            numbers.update(zip(columns[kind].at, columns[kind].values, strict=True))
    return numbers
