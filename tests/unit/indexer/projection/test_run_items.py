"""From records of a run to index items, markers and findings, without a table."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from indexer.projection import index_items, run_items
from indexer.verification import expected_items, partition_scan
from mlcore.db import keys
from mlcore.db.table import key_of_item
from mlcore.entities.metrics import Metric
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.history.latest_point_text import latest_text

RUN = ("1", "R")
KEYS = st.text(min_size=1, max_size=300)
DOUBLES = st.floats().map(lambda value: value + 0.0)


def text(value: float, step: int = 0) -> str:
    return latest_text(Metric("k", value, 0, step))


def image(**maps: dict[str, str]) -> dict[str, Any]:
    """A run item with these maps."""
    made: dict[str, Any] = {
        name: {"M": {key: {"S": value} for key, value in maps.get(name, {}).items()}}
        for name in run_children.MAPS
    }
    return {
        **made,
        "type": {"S": "run"},
        "experiment_id": {"S": RUN[0]},
        "run_id": {"S": RUN[1]},
        "version": {"N": "7"},
    }


@given(key=KEYS, value=DOUBLES)
def test_a_rank_is_whole_and_where_its_value_says(key: str, value: float) -> None:
    item = index_items.INDEXES["metrics"].item(RUN, key, text(value), 7)
    assert key_of_item(item) == index_items.key_of(RUN, "metrics", key, text(value))
    assert item["key"]["S"] == key
    assert str(float(item["value"]["S"])) == str(value)
    assert item["version"]["N"] == "7"
    assert partition_scan._is_whole(RUN[0], item)
    assert partition_scan.run_of(key_of_item(item)) == RUN[1]


@given(key=KEYS, value=st.text(max_size=3000))
def test_a_rank_of_a_param_holds_all_of_the_value(key: str, value: str) -> None:
    item = index_items.INDEXES["params"].item(RUN, key, value, None)
    assert (item["key"]["S"], item["value"]["S"]) == (key, value)
    assert "version" not in item
    assert len(item["SK"]["S"].encode()) <= 1024
    assert partition_scan._is_whole(RUN[0], item)
    assert not partition_scan._is_whole(RUN[0], {**item, "value": {"S": value + "x"}})


@given(first=DOUBLES, second=DOUBLES)
def test_ranks_are_in_descending_order_with_nan_last(first: float, second: float) -> None:
    places = [keys.rank_metric("1", "m", value, "R").sk for value in (first, second)]
    if math.isnan(first) or math.isnan(second):
        assert (places[0] < places[1]) == (math.isnan(second) and not math.isnan(first))
    elif first != second:
        assert (places[0] < places[1]) == (first > second)


def seen_of(old: dict[str, Any] | None, new: dict[str, Any] | None) -> run_items._RunChanges:
    seen = run_items._RunChanges()
    run_items._read_run(seen, RUN, {"OldImage": old, "NewImage": new})
    return seen


def test_only_a_param_that_moves_is_touched() -> None:
    def touched(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[Any, Any]:
        return seen_of(old, new).index_keys

    assert touched(image(tags={"t": "a"}), image(tags={"t": "b"})) == {}
    assert touched(image(params={"p": "a"}), image(params={"p": "a"})) == {}
    item_key = keys.rank_param("1", "p", "a", "R")
    assert touched(None, image(params={"p": "a"})) == {("params", "p"): {item_key}}
    assert touched(image(params={"p": "a"}), None) == {("params", "p"): {item_key}}
    moved = touched(image(params={"p": "a"}), image(params={"p": "b"}))
    assert moved == {("params", "p"): {item_key, keys.rank_param("1", "p", "b", "R")}}


def test_only_a_metric_that_moves_is_ranked() -> None:
    def moved(before: str | None, after: str | None) -> set[str]:
        images = [
            image(**({"metrics": {"m": metric}} if metric else {})) for metric in (before, after)
        ]
        seen = seen_of(*images)
        assert seen.index_keys == {}
        assert seen.entries == set()
        return seen.metrics

    first, later, other = text(1.0, 1), text(1.0, 2), text(2.0, 3)
    assert moved(first, later) == moved(first, first) == moved(None, None) == set()
    assert moved(first, other) == moved(None, first) == moved(first, None) == {"m"}
    assert seen_of(None, image(metrics={"m": first})).metrics == {"m"}
    assert seen_of(image(metrics={"m": first}), None).metrics == {"m"}


def test_a_link_names_its_dataset() -> None:
    key = run_children.input_key("n#", "d#")
    reference = run_children.DatasetReference("n#", "d#", ())
    item = index_items.INDEXES["inputs"].item(RUN, key, run_children.input_text(reference, 0), None)
    assert key_of_item(item) == keys.dataset_link("1", "R", "n#", "d#")
    assert partition_scan.run_of(key_of_item(item)) == "R"


def test_what_lives_outside_is_compared_with_nothing() -> None:
    run_metric = keys.run_metric("1", "R", "m")
    item = {"PK": {"S": run_metric.pk}, "SK": {"S": run_metric.sk}, "outside": {"BOOL": True}}
    assert expected_items.differences({}, {run_metric: item}, [run_metric]) == []
    assert [
        f.problem for f in expected_items.differences({run_metric: item}, {}, [run_metric])
    ] == ["missing"]


def test_everything_of_a_run_is_derived() -> None:
    item = image(metrics={"m": text(1.0)}, params={"p": "v"}, tags={"t": "v"})
    wanted = expected_items.of_run(RUN, item, {("metrics", "o"): text(2.0)}, None)
    assert {entry["type"]["S"] for entry in wanted.values()} == {
        *("run_param", "run_tag", "rank_metric", "rank_param")
    }
    # What its item does not say is outside is a leftover.
    full = {**item, "overflow": {"S": "metrics"}}
    assert expected_items.of_run(
        RUN, full, {("metrics", "o"): text(2.0)}, None
    ).keys() - wanted.keys() == {keys.rank_metric("1", "o", 2.0, "R")}
    assert expected_items.of_run(RUN, None, {}, None) == {}
