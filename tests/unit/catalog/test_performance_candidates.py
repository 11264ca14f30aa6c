"""What is kept of a model's artifacts orders models as looking at all of them does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from catalog import recommendations
from catalog.recommendations import Setting
from mlcore.catalog import performance_candidates
from mlcore.catalog.entry import MODEL, CatalogEntry
from mlcore.catalog.performance_candidates import PERFORMANCE, CandidateCollector, PropertyNames

NAMES = PropertyNames()
LATENCIES = (-5.0, 0.0, 50.0, 97.0, 100.0, 103.0, 105.0, 200.0)
"""Some of them so near to each other that the gain does not count."""
COUNTS = (-3.0, 0.0, 1.0, 2.0, 4.0, 1e300)
RATES = (-1.0, 1e-9, 0.5, 1.0, 3.0, 8.0, 1e300)
TARGETS = (None, 1, 2, 3, 10, 40, 2**31 - 1)


def _artifacts(chosen: Random) -> list[dict[str, Any]]:
    """Some of a model, each of which says most of what can be said."""
    results = []
    for _ in range(chosen.randrange(6)):
        artifact: dict[str, Any] = {
            NAMES.latency: chosen.choice(LATENCIES),
            NAMES.rate: chosen.choice(RATES),
            NAMES.hardware_count: chosen.choice(COUNTS),
            NAMES.hardware: chosen.choice("AAB"),
        }
        if chosen.random() < 0.3:
            artifact[performance_candidates.REPLICAS] = chosen.choice(COUNTS)
        if chosen.random() < 0.3:
            del artifact[chosen.choice(list(artifact))]
        results.append(artifact)
    return results


def _entry(
    number: int, properties: dict[str, Any], children: tuple[CatalogEntry, ...] = ()
) -> CatalogEntry:
    fields = {"metricsType": PERFORMANCE}
    types = {
        name: "string_value" if isinstance(value, str) else "double_value"
        for name, value in properties.items()
    }
    return CatalogEntry(MODEL, "/a", number, "m", fields, properties, types, None, None, children)


def test_candidates_are_all_that_counts() -> None:
    chosen = Random(3)
    models = []
    gathering = CandidateCollector()
    for at in range(1000):
        children = [
            _entry(number, artifact) for number, artifact in enumerate(_artifacts(chosen), 1)
        ]
        models.append(_entry(at, {}, tuple(children)))
        if of_model := performance_candidates.of_model(models[-1], NAMES):
            gathering.add(at, of_model)
    stored = performance_candidates.of_stored(
        json.loads(performance_candidates.stored(gathering.candidates()))
    )
    for target in TARGETS:
        setting = Setting(target, NAMES)

        def rank(model: CatalogEntry, setting: Setting = setting) -> tuple[float, int]:
            every = recommendations.performance_artifacts(model, setting)
            latencies = [
                artifact.properties[NAMES.latency]
                for artifact in recommendations.recommend(every, setting)
            ]
            return min(latencies, default=float("inf")), model.id

        expected = [model.id for model in sorted(models, key=rank)]
        assert performance_candidates.model_order(stored, target, len(models)) == expected


def test_a_gain_that_counts() -> None:
    assert [performance_candidates.is_enough_faster(number, 100) for number in (90, 91)] == [
        True,
        False,
    ]
    assert [performance_candidates.is_enough_faster(number, 200) for number in (190, 191)] == [
        True,
        False,
    ]
