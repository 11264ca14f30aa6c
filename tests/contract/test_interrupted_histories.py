"""A request that dies between the run item and the points of its history: what it left is completed
from whichever side was written, and nothing else is touched."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.history import interrupted_writes
from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.runs.core import run_writes
from mlcore.repos.runs.history import latest_point_text, metric_history
from mlcore.repos.settings import stored_settings
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples, forget
from tests.contract.index_state import deliver, marked, ranks_found, ranks_wanted
from tests.contract.streams import Stream, following

RUN, POINTS, BOTH, NEITHER = "run", "points", "both", "neither"

_names = itertools.count()


class Killed(BaseException):
    """The process is gone: nothing of the request is answered or tidied up."""


@contextlib.contextmanager
def written(sides: str) -> Iterator[None]:
    """Requests die, having written only these sides."""

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        if sides in (POINTS, NEITHER):
            patch.setattr(run_writes, "write", die)
            patch.setattr(run_writes, "send_change", die)
        if sides in (RUN, NEITHER):
            patch.setattr(metric_history, "write", die)
            patch.setattr(metric_history, "put", die)
            patch.setattr(table, "put", die)
        if sides != BOTH:
            patch.setattr(table, "transact", die)  # which has no sides
        with contextlib.suppress(Killed):
            yield


def point(key: str, step: int, value: Any = 1.5, timestamp: int = 1) -> dict[str, Any]:
    return {"key": key, "value": value, "timestamp": timestamp, "step": step}


def log(api: Api, run_id: str, sides: str, *metrics: dict[str, Any], **fields: Any) -> None:
    with written(sides):
        if len(metrics) == 1 and not fields:
            api.post("runs/log-metric", run_id=run_id, **metrics[0])
        else:
            api.post("runs/log-batch", run_id=run_id, metrics=list(metrics), **fields)


def disagreements(api: Api, run_id: str, names: str) -> list[str]:
    """Keys whose latest value is not the latest point of their history."""
    latest = api.data(run_id)["metrics"]
    wrong = []
    for key in names:
        logged = api.history(run_id, key)
        greatest = max(
            logged, key=lambda point: (point[1], point[0], _number(point[2])), default=None
        )
        shown = latest.get(key)
        here = None if shown is None else (shown[1], shown[2], _number(shown[0]))
        there = None if greatest is None else (greatest[0], greatest[1], _number(greatest[2]))
        if here != there:
            wrong.append(f"{key}: {shown} is not {greatest}")
    return wrong


def _number(value: Any) -> float:
    number = float(value)
    return 0.0 if math.isnan(number) else number


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


LOGGED = st.lists(
    st.builds(
        point,
        st.sampled_from("ab"),
        st.integers(0, 6),
        st.sampled_from([0, 1.5, -1, "NaN", "Infinity"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([RUN, POINTS, BOTH, NEITHER]),
        LOGGED,
        st.booleans(),
        st.sampled_from(["wait", "follow", "replay", "complete"]),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("inline_bytes", [300_000, 150])
@examples(15)
@given(steps=STEPS)
def test_whichever_side_was_written_the_other_follows(
    shared_store: Store, stream: Stream, inline_bytes: int, steps: list[Any]
) -> None:
    """Requests die anywhere, nobody repeats them, and records come late and twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        _play(shared_store, stream, steps)


def _play(store: Store, stream: Stream, steps: list[Any]) -> None:
    api = store.api
    stream.fresh()
    experiment_id = api.new_experiment(f"unfinished {next(_names)}")
    run_id = api.new_run(experiment_id)
    kept: dict[str, set[tuple[Any, ...]]] = {"a": set(), "b": set()}
    handled, waiting = [], []
    for number, (sides, metrics, with_params, then) in enumerate(steps):
        params = {"params": pairs({f"p{number}": "v"})} if with_params else {}
        log(api, run_id, sides, *metrics, **params)
        for point in metric_history.of_run(experiment_id, run_id):
            kept[point.key].add((point.timestamp, point.step))
        waiting += stream.fresh()
        if then == "follow":
            assert deliver(waiting) == len(waiting)
            handled, waiting = handled + waiting, []
            # A latest value is a point of its history for whoever reads it, at once.
            for key, shown in api.data(run_id)["metrics"].items():
                assert (shown[1], shown[2]) in {point[:2] for point in api.history(run_id, key)}
        elif then == "replay" and handled:
            assert deliver(handled[::-1]) == len(handled)
        elif then == "complete":
            rebuild.complete(experiment_id, [run_id])
    api.end(run_id)
    waiting += stream.fresh()
    assert deliver(waiting) == len(waiting)
    rebuild.complete(experiment_id, [run_id])
    records = stream.fresh()
    assert deliver(records) == len(records)
    assert disagreements(api, run_id, "ab") == []
    for key, expected in kept.items():
        assert expected <= {point[:2] for point in api.history(run_id, key)}
    assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])
    report = rebuild.verify(experiment_id, patience=0)
    assert report.findings == []
    # A point that only its latest value tells of is told, and a rebuild writes it.
    assert {finding.problem for finding in report.behind} <= {"unwritten"}
    rebuild.reindex(experiment_id)
    report = rebuild.verify(experiment_id, patience=0)
    assert (report.findings, report.behind) == ([], [])
    with table.measure() as cost:
        assert (
            interrupted_writes.complete((experiment_id, run_id))
            == interrupted_writes.NOTHING_MISSING
        )
        assert rebuild.complete(experiment_id, [run_id]) == 0
    assert cost.write_units == 0


def test_the_indexer_completes_it_when_the_points_have_come(store: Store) -> None:
    """Whether or not the run goes on, and however often the record comes."""
    api = store.api
    with following(store) as stream:
        running, ended = api.new_run(), api.new_run()
        api.end(ended)
        deliver(stream.fresh())
        for run_id in (running, ended):
            log(api, run_id, POINTS, point("m", 7), point("n", 7))
            assert api.data(run_id)["metrics"] == {}
            assert api.history(run_id, "m") == api.history(run_id, "n") == []
        records = stream.fresh()
        assert deliver(records) == len(records)
        for run_id in (running, ended):
            assert disagreements(api, run_id, "mn") == []
            assert {key: metric[2] for key, metric in api.data(run_id)["metrics"].items()} == {
                "m": 7,
                "n": 7,
            }
        raised = stream.fresh()
        assert deliver(raised) == len(raised)
        assert marked(store) == {running}
        with table.measure() as cost:
            assert deliver(records) == len(records)
        assert cost.write_units == 0


def test_a_deleted_run_is_completed_and_one_that_is_gone_is_not(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        deleted, gone = api.new_run(), api.new_run()
        for run_id in (deleted, gone):
            log(api, run_id, POINTS, point("a", 1))
            log(api, run_id, RUN, point("b", 1))
        api.post("runs/delete", run_id=deleted)
        run = keys.run("0", gone)
        store.direct.delete_item(
            TableName=store.table, Key={"PK": {"S": run.pk}, "SK": {"S": run.sk}}
        )
        for _ in range(2):
            deliver(stream.fresh())
        assert not [item for item in store.items() if gone in item["SK"]["S"]]
        assert api.run(deleted)["info"]["lifecycle_stage"] == "deleted"
        api.post("runs/restore", run_id=deleted)
        assert disagreements(api, deleted, "ab") == []


def test_points_are_added_only_while_their_run_is_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = store.api
    run_id = api.new_run()
    log(api, run_id, RUN, point("b", 1))
    original, run = table.transact, keys.run("0", run_id)

    def removed_meanwhile(*arguments: Any, **more: Any) -> None:
        table.delete(run)
        original(*arguments, **more)

    monkeypatch.setattr(table, "transact", removed_meanwhile)
    interrupted_writes.complete(("0", run_id))
    assert not [item for item in store.items() if item["type"]["S"] == "run_metric_batch"]


def test_history_that_expires_is_not_brought_back(store: Store) -> None:
    """Points expire before the latest values do: then a missing one is no fault."""
    api = store.api
    stored_settings.put("ttl_policy", {"metric_history": "1d"})
    forget()
    with following(store) as stream:
        run_id = api.new_run()
        api.post("runs/log-metric", run_id=run_id, **point("m", 3))
        log(api, run_id, POINTS, point("n", 3))
        deliver(stream.fresh())
        (old,) = [
            item
            for item in store.items()
            if item["type"]["S"] == "run_metric_batch" and "m" in metric_history.batch_points(item)
        ]
        store.direct.delete_item(TableName=store.table, Key={k: old[k] for k in ("PK", "SK")})
        assert api.history(run_id, "m") == []
        rebuild.reindex("0")
        api.end(run_id)
        deliver(stream.fresh())
        report = rebuild.verify("0", patience=0)
        assert (report.findings, report.behind) == ([], [])
        assert api.history(run_id, "m") == []
        assert api.data(run_id)["metrics"]["m"][2] == 3
        assert disagreements(api, run_id, "n") == []
        kept = [item for item in store.items() if item["type"]["S"].startswith("run_metric_")]
        kept = [item for item in kept if item["type"]["S"] != "run_metric"]
        assert kept
        assert all("ttl" in item for item in kept)


def test_behind_is_not_wrong(store: Store) -> None:
    """What waits for the indexer is behind while something says so, and wrong when nothing does."""
    api = store.api
    with following(store) as stream:
        experiment_id = api.new_experiment("behind")
        deliver(stream.fresh())
        run_id = api.new_run(experiment_id)
        api.post("runs/log-batch", run_id=run_id, metrics=[point("m", 1)], params=pairs({"p": "v"}))
        report = rebuild.verify(experiment_id, patience=0)
        assert report.findings == []
        # Its metrics follow when it ends, so nothing waits for the indexer because of them.
        ranked = keys.rank_metric(experiment_id, "m", 1.5, run_id)
        assert ranked not in {finding.key for finding in report.behind}
        assert report.pending == 0
        api.end(run_id)
        report = rebuild.verify(experiment_id, patience=0)
        assert report.findings == []
        assert {finding.problem for finding in report.behind} == {"missing"}
        assert report.pending == 1
        behind = {finding.key for finding in report.behind}
        assert ranked in behind
        unmarked = Update()
        unmarked.remove(Run.lsi5sk)
        mark = table.update(keys.run(experiment_id, run_id), unmarked)
        assert not mark
        report = rebuild.verify(experiment_id, patience=0)
        assert {finding.key for finding in report.findings} == behind
        assert report.behind == []
        run = keys.run(experiment_id, run_id)
        assert rebuild.verify(experiment_id, patience=0, unread={run}).findings == []
        api.post("runs/set-tag", run_id=run_id, key="t", value="v")  # marks it again
        deliver(stream.fresh())
        report = rebuild.verify(experiment_id, patience=0)
        assert (report.findings, report.behind) == ([], [])


def test_a_latest_value_without_any_marker_is_wrong(store: Store) -> None:
    """Nothing leads anybody to it, so it is told until a rebuild."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        api.post("runs/log-metric", run_id=run_id, **point("m", 1))
        api.end(run_id)
        deliver(stream.fresh())
        metric_history.write("0", run_id, [Metric("m", 2.0, 5, 5)])
        (finding,) = rebuild.verify("0", patience=0).findings
        assert (finding.problem, finding.key) == ("outdated", keys.run_metric("0", run_id, "m"))
        rebuild.reindex("0")
        deliver(stream.fresh())
        assert rebuild.verify("0", patience=0).findings == []
        assert api.data(run_id)["metrics"]["m"] == (2.0, 5, 5)


@given(
    st.lists(
        st.builds(Metric, st.just("k"), st.floats(allow_infinity=False), *[st.integers(0, 2)] * 2)
    )
)
def test_the_latest_of_a_history_is_what_the_api_would_keep(logged: list[Metric]) -> None:
    """In whatever order they are met; NaN counts as 0."""
    greatest, _ = interrupted_writes._summary({}, logged)
    wanted = latest_point_text.latest_of(logged)
    assert {key: latest_point_text.latest_text(point)[:48] for key, point in greatest.items()} == {
        key: latest_point_text.latest_text(point)[:48] for key, point in wanted.items()
    }
    assert interrupted_writes.later_points(greatest, wanted) == {}
