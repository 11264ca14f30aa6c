"""What is written as text at once is what the dicts would have become."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.entities.metrics import MAX_DOUBLE, Metric, MetricColumns, stored_value
from mlcore.entities.runs import Run
from mlcore.responses import runs as responses
from mlcore.wire.encoding import Encoded, encode
from tests.examples import number_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.one_of(
    st.floats(allow_infinity=False).map(stored_value),
    st.sampled_from([math.nan, MAX_DOUBLE, -MAX_DOUBLE, 5e-324, 1e16, 1e22, 0.1, -7.0]),
)
INT64 = st.integers(-(2**63), 2**63 - 1)
POINTS = st.lists(st.tuples(VALUES, INT64, INT64), max_size=4)


def points_of(key: str, values: list[tuple[float, int, int]]) -> list[Metric]:
    return [Metric(key, *value) for value in values]


@given(st.dictionaries(TEXTS, st.tuples(VALUES, INT64, INT64)), st.dictionaries(TEXTS, TEXTS))
@settings(max_examples=number_of(200), database=None)
def test_the_data_of_a_run(values: dict[str, Any], texts: dict[str, str]) -> None:
    run = Run(
        run_id="r",
        experiment_id="1",
        run_name="n",
        user_id="",
        status="RUNNING",
        start_time=1,
        end_time=None,
        artifact_uri="a",
        lifecycle_stage="active",
        metrics={key: Metric(key, *value) for key, value in values.items()},
        params=texts,
        tags=dict(reversed(texts.items())),
    )
    for runs in ([run], [run, run._replace(metrics={}), run._replace(params={}, tags={})]):
        plain = encode({"runs": [responses.run(shown) for shown in runs], "next_page_token": "x"})
        text = encode(
            {
                "runs": [responses.run(shown, responses.encoded_data(shown)) for shown in runs],
                "next_page_token": "x",
            }
        )
        assert text == plain


@given(TEXTS, POINTS, st.lists(st.tuples(TEXTS, POINTS), max_size=3))
@settings(max_examples=number_of(200), database=None)
def test_points_of_histories(key: str, values: Any, of_runs: Any) -> None:
    points = points_of(key, values)
    assert encode({"metrics": responses.encoded_points(key, points)}) == encode(
        {"metrics": [responses.metric(point) for point in points]}
    )
    assert bool(responses.encoded_points(key, points)) == bool(points)
    series = [(run_id, points_of(key, some)) for run_id, some in of_runs]
    flat = [responses.metric_of_run(point, run_id) for run_id, some in series for point in some]
    columns = [(run_id, MetricColumns.of(some)) for run_id, some in series]
    encoded_points_of_runs = responses.encoded_points_of_runs(key, columns)
    assert encode({"metrics": encoded_points_of_runs}) == encode({"metrics": flat})
    assert bool(encoded_points_of_runs) == bool(flat)


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
@settings(max_examples=number_of(100), database=None)
def test_encoded_parts_lie_where_they_were_put(value: Any) -> None:
    def marked(part: Any, depth: int) -> Any:
        if depth == 2:
            return Encoded(encode({"x": part})[5:-1])
        if isinstance(part, dict):
            return {name: marked(inner, depth + 1) for name, inner in part.items()}
        if isinstance(part, list):
            return [marked(inner, depth + 1) for inner in part]
        return part

    body = {"a": value, "nan": [math.nan], "text": "x"}
    assert encode(marked(body, 0)) == encode(body)
