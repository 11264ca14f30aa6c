"""The stored forms of points keep every value, and their order is MLflow's rule of the latest."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from mlcore.db import keys
from mlcore.entities.metrics import MAX_DOUBLE, Metric, recency, stored_value
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.history import latest_point_text, metric_history

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.floats(allow_infinity=False).map(stored_value),
    st.sampled_from([0.0, math.nan, MAX_DOUBLE, -MAX_DOUBLE, 5e-324, -5e-324]),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
METRICS = st.builds(Metric, KEYS, VALUES, INT64, INT64)
CLOSE = st.builds(
    Metric,
    st.just("k"),
    st.sampled_from([0.0, 1.0, -1.0, math.nan]),
    st.integers(-1, 1),
    st.integers(-1, 1),
)


def same(left: Metric, right: Metric) -> bool:
    return repr(left) == repr(right)


@given(METRICS)
def test_the_latest_point_comes_back(metric: Metric) -> None:
    assert same(
        latest_point_text.parse_latest(metric.key, latest_point_text.latest_text(metric)), metric
    )


@given(st.dictionaries(KEYS, st.tuples(VALUES, INT64, INT64)))
def test_latest_points_come_back_together(values: dict[str, tuple[float, int, int]]) -> None:
    metrics = {key: Metric(key, *value) for key, value in values.items()}
    texts = {key: latest_point_text.latest_text(metric) for key, metric in metrics.items()}
    all_latest = latest_point_text.parse_all_latest(texts)
    assert list(all_latest) == list(texts)
    assert all(same(all_latest[key], metric) for key, metric in metrics.items())
    assert all(metric.__class__ is Metric for metric in all_latest.values())


@given(st.one_of(st.tuples(METRICS, METRICS), st.tuples(CLOSE, CLOSE)))
def test_texts_have_the_order_of_recency(pair: tuple[Metric, Metric]) -> None:
    left, right = pair
    if recency(left) < recency(right):
        assert latest_point_text.latest_text(left) < latest_point_text.latest_text(right)


@given(st.lists(CLOSE, max_size=6))
def test_the_latest_of_many(metrics: list[Metric]) -> None:
    latest = latest_point_text.latest_of(metrics)
    assert latest.keys() == {metric.key for metric in metrics}
    for metric in latest.values():
        first = next(m for m in metrics if recency(m) == max(map(recency, metrics)))
        assert same(metric, first)


def test_values_that_sql_has_no_place_for() -> None:
    assert stored_value(math.inf) == MAX_DOUBLE
    assert stored_value(-math.inf) == -MAX_DOUBLE
    assert math.copysign(1, stored_value(-0.0)) == 1
    assert math.isnan(stored_value(math.nan))


@given(st.lists(CLOSE, max_size=12), st.randoms())
def test_each_point_is_in_the_history_once(metrics: list[Metric], chance: object) -> None:
    twice = [*metrics, *reversed(metrics)]
    distinct = metric_history.distinct(twice)
    assert len({repr(metric) for metric in distinct}) == len(distinct)
    assert {repr(metric) for metric in distinct} == {repr(metric) for metric in metrics}
    places = [
        (m.timestamp, m.step, 0.0 if math.isnan(m.value) else m.value, math.isnan(m.value))
        for m in distinct
    ]
    assert places == sorted(places)


@given(st.lists(st.builds(Metric, st.sampled_from("abc"), VALUES, INT64, INT64), min_size=1))
def test_a_request_is_one_item_and_a_retry_the_same(metrics: list[Metric]) -> None:
    made = metric_history.items("1", "R", metrics)
    assert len(made) == 1
    again = metric_history.items("1", "R", metrics)
    assert made[0]["SK"] == again[0]["SK"]
    points = [
        metric for series in metric_history.batch_points(made[0]).values() for metric in series
    ]
    assert sorted(map(repr, points)) == sorted(map(repr, metrics))


def test_no_item_is_larger_than_dynamodb_takes() -> None:
    chance = random.Random(1)
    worst = [
        Metric("k", chance.uniform(-1, 1), chance.getrandbits(63), chance.getrandbits(63))
        for _ in range(20_000)
    ]
    packs = metric_history.history_items("1", "R", "k", worst)
    assert all(len(pack["data"]["B"]) < 200_000 for pack in packs)
    assert sum(int(pack["count"]["N"]) for pack in packs) == 20_000
    batches = metric_history.items("1", "R", worst)
    assert all(len(batch["data"]["B"]) < 390_000 for batch in batches)
    assert sum(len(metric_history.batch_points(batch)["k"]) for batch in batches) == 20_000
    keys = ["".join(chr(chance.randint(0x10000, 0x1FFFF)) for _ in range(246)) for _ in range(1000)]
    batches = metric_history.items("1", "R", [worst[0]._replace(key=key) for key in keys])
    assert all(len(batch["data"]["B"]) < 390_000 for batch in batches)
    assert sum(len(metric_history.batch_points(batch)) for batch in batches) == 1000


def test_each_map_of_a_run_tells_its_partition_without_a_key() -> None:
    """What lives outside is looked for there."""
    places = {entry.key_of(("1", "r"), "").pk for entry in run_children.MAPS.values()}
    assert places == {keys.run("1", "r").pk}
