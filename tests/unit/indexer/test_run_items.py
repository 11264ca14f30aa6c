"""From records of a run to index items, markers and findings, without a table."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import earlier_markers, expected, index_items, run_items, survey
from indexer.child_items import is_earlier_metric
from indexer.expected import Finding
from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.db.table import key_in
from mlcore.entities.metrics import Metric
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs.points import latest_text

RUN = ("1", "R")
KEYS = st.text(min_size=1, max_size=300)
DOUBLES = st.floats().map(lambda value: value + 0.0)


def text(value: float, step: int = 0) -> str:
    return latest_text(Metric("k", value, 0, step))


def image(**maps: dict[str, str]) -> dict[str, Any]:
    """A run item with these maps."""
    made: dict[str, Any] = {
        name: {"M": {key: {"S": one} for key, one in maps.get(name, {}).items()}}
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
    assert key_in(item) == index_items.place_of(RUN, "metrics", key, text(value))
    assert item["key"]["S"] == key
    assert str(float(item["value"]["S"])) == str(value)
    assert item["version"]["N"] == "7"
    assert survey._is_whole(RUN[0], item)
    assert survey.run_of(key_in(item)) == RUN[1]


@given(key=KEYS, value=st.text(max_size=3000))
def test_a_rank_of_a_param_holds_all_of_the_value(key: str, value: str) -> None:
    item = index_items.INDEXES["params"].item(RUN, key, value, None)
    assert (item["key"]["S"], item["value"]["S"]) == (key, value)
    assert "version" not in item
    assert len(item["SK"]["S"].encode()) <= 1024
    assert survey._is_whole(RUN[0], item)
    assert not survey._is_whole(RUN[0], {**item, "value": {"S": value + "x"}})


@given(first=DOUBLES, second=DOUBLES)
def test_ranks_are_in_descending_order_with_nan_last(first: float, second: float) -> None:
    places = [keys.rank_metric("1", "m", value, "R").sk for value in (first, second)]
    if math.isnan(first) or math.isnan(second):
        assert (places[0] < places[1]) == (math.isnan(second) and not math.isnan(first))
    elif first != second:
        assert (places[0] < places[1]) == (first > second)


def seen_of(old: dict[str, Any] | None, new: dict[str, Any] | None) -> run_items._Seen:
    seen = run_items._Seen()
    run_items._read_run(seen, RUN, {"OldImage": old, "NewImage": new})
    return seen


def test_only_a_param_that_moves_is_touched() -> None:
    def touched(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[Any, Any]:
        return seen_of(old, new).inside

    assert touched(image(tags={"t": "a"}), image(tags={"t": "b"})) == {}
    assert touched(image(params={"p": "a"}), image(params={"p": "a"})) == {}
    place = keys.rank_param("1", "p", "a", "R")
    assert touched(None, image(params={"p": "a"})) == {("params", "p"): {place}}
    assert touched(image(params={"p": "a"}), None) == {("params", "p"): {place}}
    moved = touched(image(params={"p": "a"}), image(params={"p": "b"}))
    assert moved == {("params", "p"): {place, keys.rank_param("1", "p", "b", "R")}}


def test_only_a_metric_that_moves_is_ranked() -> None:
    def moved(before: str | None, after: str | None) -> set[str]:
        images = [image(**({"metrics": {"m": one}} if one else {})) for one in (before, after)]
        seen = seen_of(*images)
        assert seen.inside == {}
        assert seen.changed == set()
        return seen.metrics

    first, later, other = text(1.0, 1), text(1.0, 2), text(2.0, 3)
    assert moved(first, later) == moved(first, first) == moved(None, None) == set()
    assert moved(first, other) == moved(None, first) == moved(first, None) == {"m"}
    assert seen_of(None, image(metrics={"m": first})).metrics == {"m"}
    assert seen_of(image(metrics={"m": first}), None).metrics == {"m"}


def test_of_a_run_with_metrics_of_an_earlier_version_all_are_ranked() -> None:
    seen = seen_of(None, image(metrics={"m": text(1.0)}))
    assert run_items._ranked_anew(seen) == {"m"}
    place = keys.run_param("1", "R", "p")
    param = run_children.MAPS["params"].child(place, "p", "a")
    seen.earlier = list(filter(is_earlier_metric, [param]))
    assert run_items._ranked_anew(seen) == {"m"}
    place = keys.run_metric("1", "R", "n")
    metric = run_children.MAPS["metrics"].child(place, "n", text(1.0))
    seen.earlier = list(filter(is_earlier_metric, [param, metric]))
    assert run_items._ranked_anew(seen) is None


def test_a_link_names_its_dataset() -> None:
    key = run_children.input_key("n#", "d#")
    reference = run_children.DatasetReference("n#", "d#", ())
    item = index_items.INDEXES["inputs"].item(RUN, key, run_children.input_text(reference, 0), None)
    assert key_in(item) == keys.dataset_link("1", "R", "n#", "d#")
    assert survey.run_of(key_in(item)) == "R"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (None, None, None),
        (None, "w", "w"),
        ("v", "w", "w"),
        ("w", "w", None),
        ("w", None, None),
    ],
)
def test_a_record_shows_a_write_of_an_earlier_version(
    old: str | None, new: str | None, shown: str | None
) -> None:
    def written(write_id: str | None) -> dict[str, Any]:
        return {} if write_id is None else {"last_write": {"S": write_id}}

    record = {"OldImage": written(old), "NewImage": written(new)}
    assert earlier_markers.followed_write(record) == shown


def test_the_marker_of_a_run_with_values_outside_is_never_abandoned() -> None:
    old = {"updated_at": {"N": "1"}}
    assert earlier_markers.is_old({**old, "write_id": {"S": "w"}}, 2)
    assert not earlier_markers.is_old({**old, "write_id": {"S": "w"}}, 1)
    assert not earlier_markers.is_old({**old, "write_id": {"S": "overflow"}}, 2)


def test_what_lives_outside_is_compared_with_nothing() -> None:
    place = keys.run_metric("1", "R", "m")
    item = {"PK": {"S": place.pk}, "SK": {"S": place.sk}, "outside": {"BOOL": True}}
    assert expected.differences({}, {place: item}, [place]) == []
    assert [f.problem for f in expected.differences({place: item}, {}, [place])] == ["missing"]


def test_what_earlier_versions_had_of_metrics_is_no_fault() -> None:
    def surplus(place: Key, attribute: str, value: str) -> list[Finding]:
        child = run_children.MAPS[attribute].child(place, "k", value)
        return expected.differences({}, {place: child}, [place])

    assert surplus(keys.run_metric("1", "R", "k"), "metrics", text(1.0)) == []
    found = surplus(keys.run_param("1", "R", "k"), "params", "v")
    assert [finding.problem for finding in found] == [expected.SURPLUS]


def test_everything_of_a_run_is_derived() -> None:
    item = image(metrics={"m": text(1.0)}, params={"p": "v"}, tags={"t": "v"})
    wanted = expected.of_run(RUN, item, {("metrics", "o"): text(2.0)}, None)
    assert {one["type"]["S"] for one in wanted.values()} == {
        *("run_param", "run_tag", "rank_metric", "rank_param")
    }
    # What its item does not say is outside is a leftover.
    full = {**item, "overflow": {"S": "metrics"}}
    assert expected.of_run(
        RUN, full, {("metrics", "o"): text(2.0)}, None
    ).keys() - wanted.keys() == {
        keys.rank_metric("1", "o", 2.0, "R"),
        keys.pending("1", "run", "R", "overflow"),
    }
    assert expected.of_run(RUN, None, {}, None) == {}
