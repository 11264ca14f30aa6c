"""What the indexer writes: its amount, its order, and the markers that it takes away."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

import indexer.app
from mlcore.db.table import Table, table
from tests.contract.api import pairs
from tests.contract.conftest import Store
from tests.contract.streams import Record, Stream, following


def metrics(*names: str, value: float, step: int = 0) -> list[dict[str, Any]]:
    return [{"key": name, "value": value, "timestamp": step, "step": step} for name in names]


def deliver(records: list[Record]) -> None:
    assert indexer.app.handler({"Records": records}, None) == {"batchItemFailures": []}


FULL_TEXT = 5 + 1 + 1
"""Write units for five tags: an item for each value, all that the run holds in one, and the page
that the values are listed in."""


def of_type(store: Store, *kinds: str) -> list[dict[str, Any]]:
    return [item for item in store.items() if item["type"]["S"] in kinds]


def test_a_typical_batch_costs_what_the_architecture_says(store: Store) -> None:
    """A run with a name of MLflow's length; 20 metrics, 20 params, 5 tags; then the same metrics
    with other values."""
    with following(store) as stream:
        store.api.get("experiments/get", experiment_id="0")
        stream.fresh()
        run_id = store.api.new_run(run_name="bright-shrike-123")
        with table.measure() as cost:
            deliver(stream.fresh())
        # Three words, found in all experiments; all that the run holds in one item; two words are
        # listed in a page, which is made for it; the TAG item of the name; the marker.
        assert cost.write_units == 3 * 2 + 1 + 1 + 2
        names = [f"metric {n}" for n in range(20)]
        for step, expected in ((0, 127 + FULL_TEXT), (1, 102)):
            store.api.post(
                "runs/log-batch",
                run_id=run_id,
                metrics=metrics(*names, value=step, step=step),
                params=pairs({f"param {n}": "x" for n in range(20)}),
                tags=pairs({f"tag {n}": f"value {n}" for n in range(5)}),
            )
            records = stream.fresh()
            with table.measure() as cost:
                deliver(records)
            assert cost.write_units == expected
            assert cost.requests < 20


INDEX = ("run_metric", "run_param", "run_tag", "rank_metric", "rank_param")
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
    # Sixteen METRIC, PARAM and RANK items, five TAG, the markers; words, values and the reverse
    # items: of the texts alone, fifteen and what is new.
    assert sum(text_units) / 40 < 60, text_units


def test_ten_thousand_points_of_a_metric_leave_one_rank(store: Store) -> None:
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
        ranks = of_type(store, "rank_metric")
        assert {item["key"]["S"]: float(item["value"]["S"]) for item in ranks} == {
            "m": 9999,
            "n": 49,
        }
        assert len(ranks) == 2
        # One put for each metric; the rest takes away: 69 ranks that never were, 70 markers.
        assert cost.write_units < 2 * 2 + 2 + 70 + 70


def test_a_value_that_stays_is_not_ranked_again(store: Store) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("rate", value=0.1))
        deliver(stream.fresh())
        before = of_type(store, "rank_metric")
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("rate", value=0.1, step=1))
        deliver(stream.fresh())
        assert of_type(store, "rank_metric") == before
        (child,) = of_type(store, "run_metric")
        assert child["step"]["N"] == "1"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 1e308, 5e-324])
def test_every_double_is_ranked(store: Store, value: float) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        sent = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, value)
        if isinstance(sent, float) and math.isnan(sent):
            sent = "NaN"
        store.api.post("runs/log-metric", run_id=run_id, key="m", value=sent, step=0, timestamp=0)
        deliver(stream.fresh())
        (rank,) = of_type(store, "rank_metric")
        shown = store.api.run(run_id)["data"]["metrics"][0]["value"]
        assert str(float(rank["value"]["S"])) == str(float(shown))


def test_puts_come_before_removals_and_markers_go_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        deliver(stream.fresh())
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=2, step=1))
        records = stream.fresh()
        seen = _watch(monkeypatch)
        deliver(records)
    order = [what for what in seen if what[1] in {"rank_metric", "RANK", "PENDING"}]
    assert order == [("put", "rank_metric"), ("delete", "RANK"), ("delete", "PENDING")]


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
        return original(self, operation, **parameters)

    monkeypatch.setattr(Table, "_call", call)
    return seen


def test_what_is_finished_is_not_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only markers that stayed behind make the indexer read a history: an ordinary write, and its
    record that comes twice, cost one read of the run and no Query."""
    queries: list[dict[str, Any]] = []
    original = Table._call

    def call(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "Query":
            queries.append(parameters)
        return original(self, operation, **parameters)

    with following(store) as stream:
        run_id = store.api.new_run()
        deliver(stream.fresh())
        for step in range(3):
            store.api.post(
                "runs/log-batch", run_id=run_id, metrics=metrics("m", value=1, step=step)
            )
            store.api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", "n", value=step))
        records = stream.fresh()
        monkeypatch.setattr(Table, "_call", call)
        for _ in range(2):
            with table.measure() as cost:
                deliver(records)
            assert cost.read_units <= 1 + 3  # the run, and the batches that are unpacked
        assert queries == []


def test_a_status_change_reads_no_run(store: Store) -> None:
    with following(store) as stream:
        run_id = store.api.new_run()
        deliver(stream.fresh())
        store.api.post("runs/update", run_id=run_id, status="FINISHED")
        with table.measure() as cost:
            deliver(stream.fresh())
        assert cost.read_units == 0


def backdated(records: list[Record], stream: Stream, milliseconds: int) -> list[Record]:
    """Records as they come from Lambda, created later than they were."""
    for record in records:
        change = record["dynamodb"]
        created = change["ApproximateCreationDateTime"].timestamp() + milliseconds / 1000
        change["ApproximateCreationDateTime"] = created
    return records


def test_markers_of_writes_that_never_happened_go_after_ten_minutes(store: Store) -> None:
    """Since such a marker may also be of a record that was given up, all of the run is derived
    again."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        deliver(stream.fresh())
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("lost", value=1))
        stream.fresh()  # these records are given up
        assert len(of_type(store, "pending")) == 1
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=1))
        deliver(backdated(stream.fresh(), stream, 60_000 * 9))
        assert Counter(item["key"]["S"] for item in of_type(store, "rank_metric")) == {"m": 1}
        assert len(of_type(store, "pending")) == 1
        api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=2, step=1))
        deliver(backdated(stream.fresh(), stream, 60_000 * 21))
        ranked = {item["key"]["S"]: item["value"]["S"] for item in of_type(store, "rank_metric")}
        assert ranked == {"m": "2.0", "lost": "1.0"}
        assert of_type(store, "pending") == []


def test_a_marker_stays_until_its_own_write_is_followed(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        deliver(stream.fresh())
        for step in range(3):
            api.post("runs/log-batch", run_id=run_id, metrics=metrics("m", value=step, step=step))
        images = [(r, r["dynamodb"].get("NewImage")) for r in stream.fresh()]
        records = [r for r, image in images if image and image["type"]["S"] == "run"]
        assert len(of_type(store, "pending")) == 3
        deliver([records[2]])
        assert len(of_type(store, "pending")) == 2
        deliver([records[0], records[2]])
        assert len(of_type(store, "pending")) == 1
        deliver([records[1]])
        assert of_type(store, "pending") == []
