"""What is kept of a model's artifacts orders models as looking at all of them does."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from catalog import recommendations
from catalog.recommendations import Setting
from mlcore.catalog import candidates
from mlcore.catalog.candidates import PERFORMANCE, Gathering, Names
from mlcore.catalog.entry import MODEL, Entry

NAMES = Names()
NUMBERS = st.sampled_from([-3.0, 0.0, 1e-9, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0, 1e300])
LATENCIES = st.one_of(st.sampled_from([-5.0, 0.0, 50.0, 100.0, 105.0, 111.0]), st.floats(0, 200))
ARTIFACTS = st.fixed_dictionaries(
    {},
    optional={
        NAMES.latency: LATENCIES,
        NAMES.rate: NUMBERS,
        NAMES.hardware_count: NUMBERS,
        NAMES.hardware: st.sampled_from(["A", "B"]),
        candidates.REPLICAS: NUMBERS,
    },
)
MODELS = st.lists(st.lists(ARTIFACTS, max_size=8), max_size=5)
TARGETS = st.lists(st.sampled_from([None, 1, 2, 3, 10, 40, 2**31 - 1]), max_size=3)


def _entry(number: int, properties: dict[str, Any], children: tuple[Entry, ...] = ()) -> Entry:
    fields = {"metricsType": PERFORMANCE}
    types = {
        name: "string_value" if isinstance(value, str) else "double_value"
        for name, value in properties.items()
    }
    return Entry(MODEL, "/a", number, "m", fields, properties, types, None, None, children)


@given(MODELS, TARGETS)
def test_candidates_are_all_that_counts(
    listed: list[list[dict[str, Any]]], targets: list[int | None]
) -> None:
    models = []
    gathering = Gathering()
    for at, artifacts in enumerate(listed):
        children = [_entry(number, one) for number, one in enumerate(artifacts, 1)]
        models.append(_entry(at, {}, tuple(children)))
        if found := candidates.of_model(models[-1], NAMES):
            gathering.add(at, found)
    stored = candidates.of_stored(json.loads(candidates.stored(gathering.candidates())))
    for target in targets:
        setting = Setting(target, NAMES)

        def place(model: Entry, setting: Setting = setting) -> tuple[float, int]:
            every = recommendations.performance(model, setting)
            latencies = [
                one.properties[NAMES.latency] for one in recommendations.recommended(every, setting)
            ]
            return min(latencies, default=float("inf")), model.id

        expected = [model.id for model in sorted(models, key=place)]
        assert candidates.ordered(stored, target, len(models)) == expected
