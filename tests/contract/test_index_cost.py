"""What the indexer writes: its amount, its order, and the marks that it takes away."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

import indexer.app
from indexer.projection import inactive_runs
from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.table import Table, table
from mlcore.repos.runs.core import marked_experiments
from tests.contract.api import pairs
from tests.contract.conftest import Store
from tests.contract.index_state import marked, ranked_of, ranks_found, ranks_wanted
from tests.contract.streams import Record, following


def metrics(*names: str, value: float, step: int = 0) -> list[dict[str, Any]]:
    return [{"key": name, "value": value, "timestamp": step, "step": step} for name in names]


def deliver(records: list[Record]) -> None:
    assert indexer.app.handler({"Records": records}, None) == {"batchItemFailures": []}


FULL_TEXT = 5 + 1 + 1
"""Write units for five tags: an item for each value, all that the run holds in one, and the page
that the values are listed in."""


def of_type(store: Store, *kinds: str) -> list[dict[str, Any]]:
    return [item for item in store.items() if item["type"]["S"] in kinds]


def of_runs(records: list[Record]) -> list[Record]:
    """Without those of points, whose packing costs what it costs."""
    kinds = [
        (record["dynamodb"].get("NewImage") or record["dynamodb"]["OldImage"])["type"]["S"]
        for record in records
    ]
    return [record for record, kind in zip(records, kinds, strict=True) if kind == "run"]


def test_a_typical_run_costs_what_the_architecture_says(store: Store) -> None:
    """A run with a name of MLflow's length; 20 metrics, 20 params, 5 tags; then the same metrics
    with other values, which cost nothing while the run goes on; its end."""
    with following(store) as stream:
        store.api.get("experiments/get", experiment_id="0")
        stream.fresh()
        marked_experiments.note("0")
        run_id = store.api.new_run(run_name="bright-shrike-123")
        with table.measure() as cost:
            deliver(of_runs(stream.fresh()))
        # Three words, found in all experiments; all that the run holds in one item; two words are
        # listed in a page, which is made for it; the TAG item of the name.
        assert cost.write_units == 3 * 2 + 1 + 1 + 1
        names = [f"metric {n}" for n in range(20)]
        for step, expected in ((0, 20 + 20 + 5 + FULL_TEXT), (1, 0), (2, 0)):
            store.api.post(
                "runs/log-batch",
                run_id=run_id,
                metrics=metrics(*names, value=step, step=step),
                params=pairs({f"param {n}": "x" for n in range(20)}),
                tags=pairs({f"tag {n}": f"value {n}" for n in range(5)}),
            )
            records = of_runs(stream.fresh())
            with table.measure() as cost:
                deliver(records)
            assert cost.write_units == expected
            assert cost.requests < 20
            assert step == 0 or cost.requests == 0
        store.api.end(run_id)
        with table.measure() as cost:
            deliver(of_runs(stream.fresh()))
        # Its metrics in one item; the mark, for which the run item of 3 KB is written.
        assert cost.write_units == 1 + 3 + 1
        assert cost.requests < 12


INDEX = ("run_metric", "run_param", "run_tag", "rank_metric", "rank_param", "rank_rows")
TEXTS = ("fts", "fts_rev", "fts_texts")


def test_a_run_has_at_most_thirty_index_items(store: Store) -> None:
    """Three metrics, five params, four tags and a name of MLflow's: the first run of an experiment,
    and those that follow, with some values that came before."""
    with following(store) as stream:
        experiment_id = store.api.new_experiment("thirty")
        deliver(stream.fresh())
        before = len(of_type(store, *INDEX, *TEXTS))
        text_units = []
        for number in range(40):
            run_id = store.api.new_run(experiment_id, run_name=f"bright-{number}shrike-{number}")
            store.api.post(
                "runs/log-batch",
                run_id=run_id,
                metrics=metrics("a", "b", "c", value=number),
                params=pairs({f"param {n}": str(number) for n in range(5)}),
                tags=pairs(
                    {
                        "owner": f"somebody {number % 7}",
                        "team": "vision",
                        "branch": f"main/{number % 3}",
                        "commit": f"{number:040x}",
                    }
                ),
            )
            store.api.end(run_id)
            records = stream.fresh()
            with table.measure() as cost:
                deliver(records)
            text_units.append(cost.write_units)
            made = len(of_type(store, *INDEX, *TEXTS)) - before
            if number == 0:
                assert made <= 30
        texts = [item["type"]["S"] for item in of_type(store, *TEXTS)]
    assert made / 40 <= 30
    assert Counter(texts)["fts_rev"] == 40 + 1  # and of the experiment
    # Ten PARAM and RANK items, the row of the metrics, five TAG items; the mark, with the run item
    # of 2 KB; words, values and the reverse items: of the texts alone, fifteen and what is new.
    assert sum(text_units) / 40 < 40, text_units


def test_ten_thousand_points_of_a_metric_are_ranked_once(store: Store) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        deliver(stream.fresh())
        for begin in range(0, 10_000, 500):
            sent = [metrics("m", value=n, step=n)[0] for n in range(begin, begin + 500)]
            store.api.post("runs/log-batch", run_id=run_id, metrics=sent)
        for n in range(50):
            store.api.post("runs/log-metric", run_id=run_id, key="n", value=n, step=n, timestamp=n)
        with table.measure() as cost:
            deliver(stream.fresh())
        assert cost.write_units == 0
        store.api.end(run_id)
        with table.measure() as cost:
            deliver(of_runs(stream.fresh()))
        assert ranked_of(store, run_id) == {"m": {"9999.0"}, "n": {"49.0"}}
        # The row, the mark; two packs, and the batches of 70 requests go.
        assert cost.write_units == 1 + 1 + 1 + 10 + 70


def test_a_value_that_stays_is_not_ranked_again(store: Store) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("rate", value=0.1))
        store.api.end(run_id)
        deliver(stream.fresh())
        before = of_type(store, "rank_rows")
        assert len(before) == 1
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("rate", value=0.1, step=1))
        deliver(stream.fresh())
        assert marked(store) == set()
        assert of_type(store, "rank_rows") == before
        assert store.api.data(run_id)["metrics"]["rate"] == (0.1, 1, 1)


def test_a_tag_of_an_ended_run_costs_no_rank(store: Store) -> None:
    """Tags are often set later."""
    with following(store) as stream:
        run_id = store.api.new_run()
        names = [f"metric {n}" for n in range(50)]
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics(*names, value=1))
        store.api.end(run_id)
        deliver(stream.fresh())
        store.api.post("runs/set-tag", run_id=run_id, key="best", value="-")
        with table.measure() as cost:
            deliver(stream.fresh())
        # The TAG item, its text, what the run holds; the mark, with the run item of 4 KB.
        assert cost.write_units == 1 + 2 + 4 + 1
        assert marked(store) == set()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 1e308, 5e-324])
def test_every_double_is_ranked(store: Store, value: float) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        sent = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, value)
        if isinstance(sent, float) and math.isnan(sent):
            sent = "NaN"
        store.api.post("runs/log-metric", run_id=run_id, key="m", value=sent, step=0, timestamp=0)
        store.api.end(run_id)
        deliver(stream.fresh())
        ((text,),) = ranked_of(store, run_id).values()
        shown = store.api.run(run_id)["data"]["metrics"][0]["value"]
        assert text == str(float(shown))


def test_metrics_are_ranked_first_and_the_mark_goes_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever dies on the way leaves the mark; the value of before is not taken away."""
    with following(store) as stream:
        run_id = store.api.new_run()
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        store.api.end(run_id)
        deliver(stream.fresh())
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=2, step=1))
        records = of_runs(stream.fresh())
        seen = _watch(monkeypatch)
        deliver(records)
    assert seen == [
        ("put", "rank_rows"),
        ("put", "run_metric_history"),
        ("delete", "R"),
        ("update", f"R#{run_id}"),
    ]
    assert ranked_of(store, run_id) == {"m": {"1.0", "2.0"}}


def _watch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What batches write, in order."""
    seen: list[tuple[str, str]] = []
    original = Table._call

    def call(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        for requests in parameters.get("RequestItems", {}).values():
            for request in requests if isinstance(requests, list) else ():
                if "PutRequest" in request:
                    seen.append(("put", request["PutRequest"]["Item"]["type"]["S"]))
                else:
                    sort_key = request["DeleteRequest"]["Key"]["SK"]["S"]
                    seen.append(("delete", sort_key.split("#")[0]))
        if operation == "UpdateItem":
            seen.append(("update", parameters["Key"]["SK"]["S"]))
        return original(self, operation, **parameters)

    monkeypatch.setattr(Table, "_call", call)
    return seen


def test_what_goes_on_is_not_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's metrics that change, and their record that comes twice, cost no request at all."""
    with following(store) as stream:
        run_id = store.api.new_run()
        deliver(stream.fresh())
        for step in range(3):
            store.api.post(
                "runs/log-batch", run_id=run_id, metrics=metrics("m", value=1, step=step)
            )
            store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", "n", value=step))
        records = of_runs(stream.fresh())
        for _ in range(2):
            with table.measure() as cost:
                deliver(records)
            assert cost.requests == 0


def test_an_end_that_tells_all_reads_the_run_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the records of a batch tell of every version of a run, nothing of what is there is
    read; where they do not, it is, and that leads to the same."""
    with following(store) as stream:
        results = []
        for at_once in (True, False):
            run_id = store.api.new_run(run_name="one name")
            for step in range(2):
                store.api.post(
                    "runs/log-batch",
                    run_id=run_id,
                    metrics=metrics("m", value=step, step=step),
                    tags=pairs({"t": f"v {step}"}),
                    params=pairs({"p": "v"}),
                )
                if not at_once:
                    deliver(stream.fresh())
            store.api.end(run_id)
            records = of_runs(stream.fresh())
            queries = _queries(monkeypatch)
            deliver(records)
            monkeypatch.undo()
            assert bool(queries) != at_once
            assert marked(store) == set()
            kinds = ("run_metric", "run_param", "run_tag", "rank_metric", "rank_param", "fts")
            made = [item["SK"]["S"] for item in of_type(store, *kinds) if run_id in item["SK"]["S"]]
            assert ranked_of(store, run_id) == {"m": {"1.0"}}
            results.append(sorted(sort_key.replace(run_id, "") for sort_key in made))
        assert results[0] == results[1]


def _queries(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Those of runs and their children, but for the batches of their points."""
    queries: list[dict[str, Any]] = []
    original = Table._call

    def call(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "Query":
            begin = parameters["ExpressionAttributeValues"].get(":s", {"S": ""})["S"]
            if begin.startswith("R#") and "#MBATCH#" not in begin:
                queries.append(parameters)
        return original(self, operation, **parameters)

    monkeypatch.setattr(Table, "_call", call)
    return queries


def test_a_status_change_of_a_run_that_goes_on_reads_no_run(store: Store) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        deliver(stream.fresh())
        store.api.post("runs/update", run_id=run_id, status="SCHEDULED")
        with table.measure() as cost:
            deliver(stream.fresh())
        assert cost.requests == 0


def test_what_records_did_not_tell_is_found_at_the_end(store: Store) -> None:
    """Records that were given up cost nothing but time."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run(run_name="kept")
        deliver(stream.fresh())
        api.post("runs/set-tag", run_id=run_id, key="gone", value="early")
        deliver(stream.fresh())
        api.post(
            "runs/log-batch",
            run_id=run_id,
            metrics=metrics("lost", value=1),
            params=pairs({"lost": "v"}),
            tags=pairs({"lost": "gamma"}),
        )
        api.post("runs/delete-tag", run_id=run_id, key="gone")
        stream.fresh()  # these records are given up
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        api.end(run_id)
        assert marked(store) == {run_id}
        deliver(stream.fresh())
        assert marked(store) == set()
        assert rebuild.verify("0", patience=0).findings == []
        assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])


def test_a_mark_stays_until_its_run_is_followed_as_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that comes between leaves it, and its own record takes it away."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        api.end(run_id)
        original = inactive_runs.remove_mark

        def overtaken(item: Any) -> None:
            monkeypatch.setattr(inactive_runs, "remove_mark", original)
            api.post("runs/set-tag", run_id=run_id, key="t", value="v")
            original(item)

        monkeypatch.setattr(inactive_runs, "remove_mark", overtaken)
        deliver(stream.fresh())
        assert marked(store) == {run_id}
        deliver(stream.fresh())
        assert marked(store) == set()
        assert rebuild.verify("0", patience=0).findings == []


def test_a_run_that_is_followed_is_in_the_order_of_its_primary_metric(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        tags = pairs({"mlflow.experiment.primaryMetric.name": "acc"})
        experiment_id = api.new_experiment("judged", tags=tags)
        run_id = api.new_run(experiment_id)
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("acc", value=0.5))
        api.end(run_id)
        deliver(stream.fresh())
        (item,) = of_type(store, "run")
        assert item["lsi5sk"]["S"] == keys.lsi5_run("acc", 0.5, run_id)
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("acc", value=0.6, step=1))
        assert marked(store) == {run_id}
        deliver(stream.fresh())
        (item,) = of_type(store, "run")
        assert item["lsi5sk"]["S"] == keys.lsi5_run("acc", 0.6, run_id)


def test_a_run_that_is_resumed_is_marked_again(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        api.end(run_id)
        deliver(stream.fresh())
        api.post("runs/update", run_id=run_id, status="RUNNING")
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        deliver(stream.fresh())
        assert marked(store) == {run_id}
        assert ranked_of(store, run_id) == {}
        api.post("runs/delete", run_id=run_id)
        deliver(stream.fresh())
        assert marked(store) == set()
        assert ranked_of(store, run_id) == {"m": {"1.0"}}
