"""What the system tables say of traces and assessments, after random histories of writes that are
landed and published under every kind of accident."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from functools import partial
from typing import Any

import polars
import pytest

from lander import app as lander
from mlcore.repos.removal import permanent_deletion
from mltables.trace_metadata_columns import PUBLISHED
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import Accidents, kill, publish_twice_at_once
from tests.contract.trace_calls import export, span, start, tell
from tests.contract.trace_story import TOLD, new_trace
from tests.contract.traces_world import TracesWorld

__all__ = ["kill", "tables"]

OPERATIONS = int(os.environ.get("TABLES_OPERATIONS", "60"))
SEED = int(os.environ.get("TABLES_SEED", "1"))


def _spans_seen(tables: Tables, without: str) -> dict[Any, list[Any]]:
    """The rows of ``spans``, by experiment and trace, but those of one experiment."""
    spans: dict[Any, list[Any]] = {}
    names = ["experiment_id", "workspace_id", "trace_id", "request_time", "request_date", "span_id"]
    names += ("parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano")
    for row in tables.rows("spans"):
        if row["experiment_id"] == without:
            continue
        note = next(
            attribute["value"] for attribute in row["attributes"] if attribute["key"] == "note"
        )
        seen = (*(row[name] for name in names), note)
        spans.setdefault((row["experiment_id"], row["trace_id"]), []).append(seen)
    return {key: sorted(rows, key=lambda row: row[5]) for key, rows in spans.items()}


def _seen(
    tables: Tables, without: str
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[Any, list[Any]]]:
    """The rows that the model describes, by experiment and trace, but those of one experiment."""
    traces: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tables.rows("traces"):
        if row["experiment_id"] == without:
            continue
        maps = {
            name: {pair["key"]: pair["value"] for pair in row[name]}
            for name in ("tags", "trace_metadata")
        }
        names = ["trace_id", "experiment_id", "workspace_id", "request_time", "request_date"]
        names += ("execution_duration_ms", "state", "session_id", "trace_name", "total_tokens")
        trace_key = (row["experiment_id"], row["trace_id"])
        assert trace_key not in traces, "each trace once"
        traces[trace_key] = {
            **{name: row[name] for name in (*names, "input_tokens")},
            "note": maps["trace_metadata"]["note"],
            "tags": {key: value for key, value in maps["tags"].items() if key.startswith("t")},
        }
    judged: dict[Any, list[Any]] = {}
    for row in tables.rows("assessments"):
        trace_key = (row["experiment_id"], row["trace_id"])
        judged.setdefault(trace_key, []).append(
            (
                row["experiment_id"],
                row["workspace_id"],
                row["trace_id"],
                row["assessment_id"],
                row["assessment_name"],
                row["assessment_type"],
                row["value"],
                {pair["key"]: pair["value"] for pair in row["metadata"]},
                row["rationale"],
            )
        )
    return traces, {key: sorted(rows, key=lambda row: row[3]) for key, rows in judged.items()}


def check(tables: Tables, world: TracesWorld, without: str = "") -> None:
    """Existing traces have their state; expired ones one that they had, or no row.

    Args:
        without: an experiment with other traces than those of the world.
    """
    traces, judged = _seen(tables, without)
    spans = _spans_seen(tables, without)
    for trace_id, state in world.traces.items():
        key = (state["experiment"], trace_id)
        assert traces.pop(key) == world.row(trace_id, state)
        assert judged.pop(key, []) == world.judgements(trace_id, state)
        assert spans.pop(key, []) == world.span_rows(trace_id, state)
    for key, row in traces.items():
        past = world.expired[key]
        known = [
            (world.row(key[1], past_state), world.judgements(key[1], past_state))
            for past_state in past
        ]
        assert (row, judged.pop(key, [])) in known
        assert spans.pop(key, []) in [
            [],
            *(world.span_rows(key[1], past_state) for past_state in past),
        ]
    assert judged == spans == {}


def test_a_random_history_is_published_once(
    store: Store, tables: Tables, kill: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = pytest.importorskip("mltables.publisher")
    upkeep = pytest.importorskip("mltables.table_maintenance")
    # So small that a step has several parts, and a day several full and several small files.
    monkeypatch.setattr("mltables.trace_publishing.TRACES_TOGETHER", 5)
    monkeypatch.setattr("mltables.row_replacement.FULL_FILE_ROWS", 3)
    monkeypatch.setattr("mltables.row_replacement.SMALL_FILES", 2)
    monkeypatch.setattr("mltables.span_staging.BATCH_BYTES", 700)
    world = TracesWorld(store, SEED)
    rng = random.Random(SEED + 1)
    waiting: list[Any] = []
    done: list[Any] = []

    accidents = Accidents(rng, kill)

    for number in range(OPERATIONS):
        world.step()
        if rng.random() < 0.15:
            waiting += world.completed(tables.stream.fresh())
        if rng.random() < 0.1 and waiting:
            # Out of order, late, and some for the second time.
            rng.shuffle(waiting)
            due, waiting = waiting[: len(waiting) // 2 + 1], waiting[len(waiting) // 2 + 1 :]
            again = rng.sample(done, min(3, len(done)))
            accidents.during(partial(accidents.land, again + due))
            done += due
        if rng.random() < 0.06:
            accidents.during(publisher.publish)
        if number % 60 == 59:
            upkeep.maintain_tables()
    waiting += world.completed(tables.stream.fresh())
    accidents.land(waiting)
    publish_twice_at_once(publisher)
    publisher.publish()
    check(tables, world)
    upkeep.maintain_tables()
    check(tables, world)
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_backfill_brings_what_no_stream_tells(store: Store, tables: Tables) -> None:
    """Also to the tables of a deployment that had none of traces, and a second time nothing."""
    whole = pytest.importorskip("mltables.backfill")
    world = TracesWorld(store, SEED)
    world.expire = world.purge = world.create
    for _ in range(60):
        world.step()
    whole.backfill()
    check(tables, world)
    assert list(pytest.importorskip("mltables.verification").verify()) == []
    assert set(whole.backfill()[1:]) == {0}
    for _ in range(20):
        world.step()
    tables.follow()
    check(tables, world)


def test_an_expired_trace_keeps_its_row_and_a_deleted_one_does_not(
    store: Store, tables: Tables
) -> None:
    world = TracesWorld(store, 3)
    world.new_experiment()
    world.new_experiment()
    for _ in range(6):
        world.create()
        world.judge()
    tables.follow()
    published = {row["trace_id"] for row in tables.rows("traces")}
    assert published == set(world.traces)
    world.expire()
    lander.handler({"Records": world.completed(tables.stream.fresh())}, None)
    tables.follow()
    assert {row["trace_id"] for row in tables.rows("traces")} == published
    world.delete()
    tables.follow()
    [(experiment, expired)] = world.expired
    kept = {expired, *world.traces}
    assert {row["trace_id"] for row in tables.rows("traces")} == kept
    assert {row["trace_id"] for row in tables.rows("assessments")} <= kept
    # Its rows go with its experiment, as those of any trace.
    store.api.post("experiments/delete", experiment_id=experiment)
    permanent_deletion.experiment(experiment)
    tables.follow()
    rest = {key for key, state in world.traces.items() if state["experiment"] != experiment}
    assert {row["trace_id"] for row in tables.rows("traces")} == rest


def test_each_column_has_its_type_and_content(store: Store, tables: Tables) -> None:
    trace = new_trace()
    experiment = store.api.new_experiment("told")
    fields = {**TOLD, "client_request_id": "mine", "response_preview": "long"}
    metadata = {
        **TOLD["trace_metadata"],
        "mlflow.trace.user": "bob",
        "mlflow.sourceRun": "some-run",
        "mlflow.trace.tokenUsage": '{"input_tokens": 12, "total_tokens": "many"}',
        "mlflow.trace.cost": '{"total_cost": 0.25, "input_cost": NaN}',
    }
    tell(
        "POST",
        "3.0/traces",
        start(experiment, f"tr-{trace}", **{**fields, "trace_metadata": metadata}),
    )
    tables.follow()
    frame = tables.frame("traces")
    time = polars.Datetime("us", "UTC")
    kinds = dict(frame.schema)
    assert {name for name, kind in kinds.items() if kind == time} == {"update_time", "request_time"}
    assert kinds["total_tokens"] == kinds["execution_duration_ms"] == polars.Int64
    assert kinds["total_cost"] == polars.Float64
    (row,) = frame.to_dicts()
    row["tags"] = {tag["key"]: tag["value"] for tag in row["tags"]}
    seen = {pair["key"]: pair["value"] for pair in row.pop("trace_metadata")}
    told_names = {name for name in metadata if not name.startswith("mlflow.trace.")}
    assert {name: seen[name] for name in told_names} == {n: metadata[n] for n in told_names}
    # SQL reads these columns in place of the map.
    assert {key: row[name] for key, name in PUBLISHED.items()} == {k: seen[k] for k in PUBLISHED}
    assert row.pop("tags")["mlflow.traceName"] == "story"
    assert isinstance(row.pop("update_time"), datetime)
    assert row == {
        "account_id": "000000000000",
        "workspace_id": "default",
        "experiment_id": experiment,
        "trace_id": f"tr-{trace}",
        "client_request_id": "mine",
        "trace_name": "story",
        "request_time": datetime(2023, 11, 14, 22, 13, 20, 4000, UTC),
        "execution_duration_ms": 950,
        "state": "OK",
        "user_id": "bob",
        "session_id": "told",
        "source_run_id": "some-run",
        "request_preview": "short",
        "response_preview": "long",
        "input_tokens": 12,
        "output_tokens": None,
        "total_tokens": None,
        "cache_read_input_tokens": None,
        "cache_creation_input_tokens": None,
        "input_cost": None,
        "output_cost": None,
        "total_cost": 0.25,
        "linked_prompts": [],
        "request_date": "2023-11-14",
    }
    (judged,) = tables.rows("assessments")
    assert (judged["value"], judged["numeric_value"], judged["valid"]) == ("true", 1.0, True)
    assert (judged["assessment_name"], judged["source_id"]) == ("good", "me")
    assert judged["create_time"] == datetime(2023, 11, 14, 22, 13, 21, tzinfo=UTC)


def test_who_may_not_read_a_workspace_learns_nothing_of_its_traces(
    store: Store, tables: Tables
) -> None:
    """Neither by counting and guessing nor by an error."""
    trace_id, experiment = f"tr-{9:032x}", store.api.new_experiment("others")
    body = start(experiment, trace_id, **TOLD, client_request_id="secret")
    tell("POST", "3.0/traces", body)
    assert export(experiment, [span(f"{9:032x}", 1, note="secret")]).status == 200
    tables.follow()
    for table in ("traces", "assessments", "spans"):
        assert tables.ask(f"SELECT count(*) FROM system.mlflow.{table}")["rows"] == [[1]]
    statements = [
        f"SELECT count(*) FROM system.mlflow.{table} WHERE {where}"
        for table in ("traces", "assessments", "spans")
        for where in ("true", f"trace_id = '{trace_id}'", "CAST(trace_id AS INT) = 1")
    ]
    for readable in ([], ["team"], ["Default"], ["default "], ["%"]):
        assert tables.counts(statements, readable) == [0] * len(statements)
