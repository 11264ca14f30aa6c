"""Metrics that an earlier version ranked, in METRIC and RANK items: searches find them, and what is
written next replaces them by rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from indexer import rank_rows, rebuild
from indexer.index_items import INDEXES
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import search as run_search
from mlcore.repos.runs.rank_columns import SettledRun
from tests.contract.conftest import Store
from tests.contract.index_state import (
    Broken,
    deliver,
    found_by,
    marked,
    of_experiment,
    ranked,
    ranked_of,
    tiny_ranks,
)
from tests.contract.streams import Stream, following

SINGLE = {"run_metric", "rank_metric"}


@pytest.fixture(autouse=True)
def by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """No experiment has so few runs that a search reads them all."""
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)


def items_before(run: Run, metrics: Iterable[str]) -> tuple[list[Raw], list[Raw]]:
    """The METRIC and the RANK items that an earlier version made of a settled run."""
    latest, owner = run.metrics or {}, (run.experiment_id, run.run_id)
    entry, index = run_children.MAPS["metrics"], INDEXES["metrics"]
    children = [entry.child(entry.place(owner, key), key, latest[key]) for key in metrics]
    return children, [index.item(owner, key, latest[key], run.version) for key in metrics]


class Earlier:
    """Ranks as an earlier version did. It removes nothing before; it may die between its calls."""

    def __init__(self, dies_after: int | None = None) -> None:
        self._left = dies_after

    def __call__(self, settled: Mapping[str, Sequence[SettledRun]]) -> list[Raw]:
        for experiment_id, found in settled.items():
            for one in found:
                run = Run.of(table.get(keys.run(experiment_id, one.run_id)) or {})
                children, ranks = items_before(run, one.places)
                self._write(puts=children)
                self._write(puts=ranks)
        self._write(puts=[])
        return []

    def _write(self, puts: list[Raw]) -> None:
        if self._left is not None:
            if self._left == 0:
                raise Broken("the process ended")
            self._left -= 1
        table.batch_write(puts)


def run_of(store: Store, experiment_id: str, **metrics: Any) -> str:
    """An ended run."""
    run_id = store.api.new_run(experiment_id)
    log(store, run_id, 0, **metrics)
    store.api.end(run_id)
    return run_id


def log(store: Store, run_id: str, step: int, **metrics: Any) -> None:
    points = [
        {"key": key, "value": value, "timestamp": 0, "step": step} for key, value in metrics.items()
    ]
    store.api.post("runs/log-batch", run_id=run_id, metrics=points)


def follow(stream: Stream) -> None:
    records = stream.fresh()
    assert deliver(records) == len(records)


def follow_as_before(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rank_rows, "put", Earlier())
        follow(stream)


def single_items(store: Store, experiment_id: str, run_id: str) -> set[str]:
    """The kinds of a run's METRIC and RANK items."""
    items = of_experiment(store, experiment_id)
    return {item["type"]["S"] for item in items if run_id in item["SK"]["S"]} & SINGLE


def is_right(store: Store, experiment_id: str, values: Mapping[str, float]) -> None:
    """Searches by a metric ``m`` give what its values say, and nothing is named as wrong."""
    numbers = {run_id: one for run_id, one in values.items() if not math.isnan(one)}
    for bound in {0.5, *numbers.values()}:
        for sign, holds in (
            (">", lambda one, bound=bound: one > bound),
            ("<=", lambda one, bound=bound: one <= bound),
            ("=", lambda one, bound=bound: one == bound),
        ):
            found = found_by(store.api, experiment_id, f"metrics.m {sign} {bound}")
            assert sorted(found) == sorted(run_id for run_id, one in numbers.items() if holds(one))
    for order, factor in (("ASC", 1), ("DESC", -1)):
        asked = {"experiment_ids": [experiment_id], "order_by": [f"metrics.m {order}"]}
        for size in (1, 3, 100):
            answer = store.api.post("runs/search", max_results=size, **asked)
            found = [run["info"]["run_id"] for run in answer["runs"]]
            ordered = sorted(numbers, key=lambda run_id: factor * numbers[run_id])
            ordered += sorted(values.keys() - numbers.keys())
            assert [values.get(one) for one in found] == pytest.approx(
                [values[one] for one in ordered[:size]], nan_ok=True
            )
    assert rebuild.verify(experiment_id, patience=0).findings == []


@pytest.mark.parametrize("tiny", [False, True])
def test_what_an_earlier_version_ranked_is_found_until_it_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch, tiny: bool
) -> None:
    """Untouched; beside runs of this version; written to one by one; removed."""
    tiny_ranks(monkeypatch, tiny=tiny)
    experiment_id = store.api.new_experiment("of an earlier version")
    with following(store) as stream:
        values: dict[str, float] = {}
        for value in (2, "NaN", 1, 2):
            values[run_of(store, experiment_id, m=value, n=value)] = float(value)
        follow_as_before(stream, monkeypatch)
        assert marked(store) == set()
        assert ranked(of_experiment(store, experiment_id)) == {}
        for run_id in values:
            assert single_items(store, experiment_id, run_id) == SINGLE
        is_right(store, experiment_id, values)

        first, second, third, fourth = values
        log(store, first, 1, m=2.5)
        is_right(store, experiment_id, {**values, first: 2.5})
        values[first] = 2.5
        for value in (0, 3):
            values[run_of(store, experiment_id, m=value)] = float(value)
        follow(stream)
        # What did not change is ranked too, since its RANK item goes.
        assert ranked_of(store, first) == {"m": {"2.5"}, "n": {"2.0"}}
        assert single_items(store, experiment_id, first) == set()
        assert single_items(store, experiment_id, third) == SINGLE
        is_right(store, experiment_id, values)

        store.api.post("runs/set-tag", run_id=second, key="t", value="v")
        follow(stream)
        assert ranked_of(store, second) == {"m": {"nan"}, "n": {"nan"}}
        assert single_items(store, experiment_id, second) == set()
        is_right(store, experiment_id, values)

        place = keys.run(experiment_id, third)
        item_key = {"PK": {"S": place.pk}, "SK": {"S": place.sk}}
        store.direct.delete_item(TableName=store.table, Key=item_key)
        follow(stream)
        assert single_items(store, experiment_id, third) == set()
        del values[third]
        is_right(store, experiment_id, values)

        assert single_items(store, experiment_id, fourth) == SINGLE
        assert rebuild.reindex(experiment_id).findings == []
        assert single_items(store, experiment_id, fourth) == set()
        assert ranked_of(store, fourth) == {"m": {"2.0"}, "n": {"2.0"}}
        is_right(store, experiment_id, values)


@pytest.mark.parametrize("dies_after", [0, 1, 2])
@pytest.mark.parametrize("was_ranked", [False, True])
def test_a_batch_that_an_earlier_version_left_half_done(
    store: Store, monkeypatch: pytest.MonkeyPatch, dies_after: int, was_ranked: bool
) -> None:
    """Before its METRIC items, its RANK items, or the mark: this version gets the batch again."""
    experiment_id = store.api.new_experiment("half done")
    with following(store) as stream:
        other = run_of(store, experiment_id, m=1)
        run_id = run_of(store, experiment_id, m=0, n=0) if was_ranked else ""
        follow_as_before(stream, monkeypatch)
        if was_ranked:
            log(store, run_id, 1, m=2)
            # The RANK item of the old value goes before all else.
            table.delete(keys.rank_metric(experiment_id, "m", 0.0, run_id))
        else:
            run_id = run_of(store, experiment_id, m=2, n=0)
        records = stream.fresh()
        with monkeypatch.context() as patch:
            patch.setattr(rank_rows, "put", Earlier(dies_after))
            assert deliver(records) < len(records)
        values = {other: 1.0, run_id: 2.0}
        assert marked(store) == {run_id}
        is_right(store, experiment_id, values)
        assert deliver(records) == len(records)
        assert marked(store) == set()
        assert ranked_of(store, run_id) == {"m": {"2.0"}, "n": {"0.0"}}
        if was_ranked:
            assert single_items(store, experiment_id, run_id) == set()
        is_right(store, experiment_id, values)
        for step, value in ((2, 0.5), (3, 2.0)):
            log(store, run_id, step, m=value)
            follow(stream)
            assert single_items(store, experiment_id, run_id) == set()
            is_right(store, experiment_id, {**values, run_id: value})


def test_values_outside_keep_their_items(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its run has no room for has METRIC and RANK items of this version, too."""
    monkeypatch.setattr(document, "INLINE_BYTES", 700)
    experiment_id = store.api.new_experiment("outside")
    with following(store) as stream:
        names = [f"metric {n:02}" for n in range(20)]
        run_id = run_of(store, experiment_id, m=1, **dict.fromkeys(names, 2))
        follow_as_before(stream, monkeypatch)

        def outside() -> set[str]:
            items = of_experiment(store, experiment_id)
            return {item["key"]["S"] for item in items if "outside" in item}

        def singly_ranked() -> set[str]:
            items = of_experiment(store, experiment_id)
            return {i["key"]["S"] for i in items if i["type"]["S"] == "rank_metric"}

        before = outside()
        assert before
        assert before < {*names}
        assert singly_ranked() == {"m", *names}
        is_right(store, experiment_id, {run_id: 1.0})
        rebuild.reindex(experiment_id)
        assert outside() == singly_ranked() == before
        assert ranked_of(store, run_id).keys() == {"m", *names} - before
        is_right(store, experiment_id, {run_id: 1.0})
        for name in names:
            assert found_by(store.api, experiment_id, f"metrics.`{name}` = 2") == [run_id]
        lost = keys.rank_metric(experiment_id, min(before), 2.0, run_id)
        table.delete(lost)
        (finding,) = rebuild.verify(experiment_id, patience=0).findings
        assert (finding.problem, finding.place) == ("missing", lost)
        assert rebuild.reindex(experiment_id).findings == [finding]
        assert singly_ranked() == before
        assert ranked_of(store, run_id).keys() == {"m", *names} - before


def test_a_rank_of_an_earlier_version_that_nobody_asks_for_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = store.api.new_experiment("surplus")
    with following(store) as stream:
        run_id = run_of(store, experiment_id, m=1)
        follow_as_before(stream, monkeypatch)
        run = Run.of(table.get(keys.run(experiment_id, run_id)) or {})
        _, (rank,) = items_before(run, ["m"])
        place = keys.rank_metric(experiment_id, "m", 7.0, run_id)
        table.put({**rank, "SK": {"S": place.sk}, "value": {"S": "7"}})
        (finding,) = rebuild.verify(experiment_id, patience=0).findings
        assert (finding.problem, finding.place) == ("surplus", place)
        assert rebuild.reindex(experiment_id).findings == [finding]
        is_right(store, experiment_id, {run_id: 1.0})
        assert single_items(store, experiment_id, run_id) == set()
