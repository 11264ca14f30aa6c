"""The system table of spans: its columns, spans that are kept in files, and traces that expire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import polars
import pytest

from lander import app as lander
from mlcore import artifacts
from mlcore.db import keys
from mlcore.system_tables import storage
from tests.contract import span_files
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import START, export, otlp_value, span, start, tell
from tests.contract.traces_world import TracesWorld

__all__ = ["tables"]

TRACE = f"{11:032x}"


def _texts(entries: list[dict[str, str]]) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in entries}


def _attributes(**values: Any) -> list[Any]:
    return [{"key": key, "value": otlp_value(value)} for key, value in values.items()]


def test_each_column_has_its_type_and_content(store: Store, tables: Tables) -> None:
    experiment = store.api.new_experiment("told")
    sent_span = span(TRACE, 2, 1, start=3, end=8, plain="text", count=7, flag=True)
    event = {"timeUnixNano": str(START + 5), "name": "thrown"}
    sent_span["events"] = [{**event, "attributes": _attributes(why="because", at=3)}]
    sent_span["links"] = [{"traceId": f"{12:032x}", "spanId": f"{13:016x}"}]
    sent_span["status"] = {"code": 2, "message": "broken"}
    sent_span["kind"] = 3
    assert export(experiment, [sent_span, span(TRACE, 1, end=9)]).status == 200
    tables.follow()
    frame = tables.frame("spans")
    kinds = dict(frame.schema)
    assert kinds["time"] == kinds["request_time"] == polars.Datetime("us", "UTC")
    assert kinds["start_time_unix_nano"] == kinds["end_time_unix_nano"] == polars.Int64
    root, row = frame.sort("span_id").to_dicts()
    assert (root["parent_span_id"], root["kind"], root["events"]) == (
        None,
        "SPAN_KIND_INTERNAL",
        [],
    )
    attributes = _texts(row.pop("attributes"))
    assert attributes["mlflow.traceRequestId"] == f"tr-{TRACE}"
    assert (attributes["plain"], attributes["count"], attributes["flag"]) == ("text", "7", "true")
    (thrown,) = row.pop("events")
    assert _texts(thrown.pop("attributes")) == {"why": "because", "at": "3"}
    assert thrown == {"time_unix_nano": START + 5, "name": "thrown"}
    assert row == {
        "account_id": "000000000000",
        "workspace_id": "default",
        "experiment_id": experiment,
        "trace_id": f"tr-{TRACE}",
        "request_time": datetime.fromtimestamp(START / 1e9, UTC),
        "span_id": f"{2:016x}",
        "parent_span_id": f"{1:016x}",
        "name": "span 2",
        "kind": "SPAN_KIND_CLIENT",
        "time": datetime.fromtimestamp(START / 1e9 + 0.003, UTC),
        "start_time_unix_nano": START + 3_000_000,
        "end_time_unix_nano": START + 8_000_000,
        "links": [{"trace_id": f"tr-{12:032x}", "span_id": f"{13:016x}", "attributes": []}],
        "status": {"message": "broken", "code": "STATUS_CODE_ERROR"},
        "request_date": "2023-11-14",
    }
    answer = tables.ask(
        "SELECT name, status.code, attributes['plain'], size(events) FROM system.mlflow.spans "
        "WHERE status.code = 'STATUS_CODE_ERROR' AND attributes['count'] = '7'"
    )
    assert answer["rows"] == [["span 2", "STATUS_CODE_ERROR", "text", 1]]


def test_spans_kept_in_files_and_in_several_exports_are_each_one_row(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlcore.repos.traces.span_packs.ITEM_BYTES", 200)
    experiment = store.api.new_experiment("large")
    long = json.dumps(list(range(5_000)))
    assert export(experiment, [span(TRACE, 1), span(TRACE, 2, 1, text=long)]).status == 200
    tables.follow()
    assert (
        export(experiment, [span(TRACE, 3, 1), span(TRACE, 2, 1, end=4, text="new")]).status == 200
    )
    tables.follow()
    results = {
        row["span_id"]: _texts(row["attributes"]).get("text") for row in tables.rows("spans")
    }
    assert results == {f"{1:016x}": None, f"{2:016x}": "new", f"{3:016x}": None}
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_times_and_texts_that_no_file_can_hold_do_not_stop_the_publisher(
    store: Store, tables: Tables
) -> None:
    experiment = store.api.new_experiment("odd")
    odd = span(TRACE, 1, text=json.dumps("half \ud800"), list='["\\ud800"]')
    odd["endTimeUnixNano"] = str(2**64 - 1)
    odd["events"] = [{"timeUnixNano": str(2**64 - 1), "name": "late"}]
    assert export(experiment, [odd]).status == 200
    tables.follow()
    (row,) = tables.rows("spans")
    assert row["end_time_unix_nano"] == row["events"][0]["time_unix_nano"] == 2**63 - 1
    assert _texts(row["attributes"])["text"] == "half ?"


def test_a_lost_file_stops_no_other_trace(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its published spans stay."""
    monkeypatch.setattr("mlcore.repos.traces.span_packs.ITEM_BYTES", 200)
    experiment = store.api.new_experiment("lost")
    long = json.dumps(list(range(5_000)))
    assert export(experiment, [span(TRACE, 1, text=long)]).status == 200
    tables.follow()
    tell("PATCH", f"3.0/traces/tr-{TRACE}/tags", {"key": "t", "value": "changed"})
    files = artifacts.store()
    locations = {item["location"]["S"] for item in store.items() if "location" in item}
    assert locations
    for file in locations:
        files.delete(file)
    assert export(experiment, [span(f"{12:032x}", 1)]).status == 200
    tables.follow()
    assert sorted(row["trace_id"] for row in tables.rows("spans")) == [
        f"tr-{TRACE}",
        f"tr-{12:032x}",
    ]


def test_a_trace_that_expires_item_by_item_keeps_its_spans(store: Store, tables: Tables) -> None:
    """DynamoDB removes the items of an expired trace in any order, within days."""
    experiment = store.api.new_experiment("short")
    assert export(experiment, [span(TRACE, 1)]).status == 200
    tables.follow()
    key = keys.trace(experiment, f"tr-{TRACE}")
    direct, table = store.direct, store.table
    direct.update_item(
        TableName=table,
        Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}},
        UpdateExpression="SET #t = :one",
        ExpressionAttributeNames={"#t": "ttl"},
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    pack = keys.trace_spans(experiment, f"tr-{TRACE}")
    direct.delete_item(TableName=table, Key={"PK": {"S": pack.pk}, "SK": {"S": pack.sk}})
    tables.follow()
    assert len(tables.rows("spans")) == 1


def test_deleting_and_removing_reach_the_spans(store: Store, tables: Tables) -> None:
    experiment = store.api.new_experiment("gone")
    for number in (1, 2):
        assert export(experiment, [span(f"{number:032x}", 1)]).status == 200
    tables.follow()
    body = {"experiment_id": experiment, "request_ids": [f"tr-{1:032x}"]}
    tell("POST", "2.0/traces/delete-traces", body)
    tables.follow()
    assert [row["trace_id"] for row in tables.rows("spans")] == [f"tr-{2:032x}"]


def test_spans_follow_the_day_of_their_trace(store: Store, tables: Tables) -> None:
    experiment = store.api.new_experiment("days")
    assert export(experiment, [span(TRACE, 1)]).status == 200
    tables.follow()
    body = start(experiment, f"tr-{TRACE}", state="OK", request_time="2024-02-03T04:05:06Z")
    tell("POST", "3.0/traces", body)
    tables.follow()
    (row,) = tables.rows("spans")
    assert row["request_date"] == "2024-02-03"
    assert row["request_time"] == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_a_load_of_several_days_writes_one_file_a_day(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are random: parts of a load in the order of ids would each write to all its days."""
    monkeypatch.setattr("mltables.trace_publishing.TRACES_TOGETHER", 5)
    experiment = store.api.new_experiment("load")
    spans = [
        span(f"{number:032x}", 1, start=at, end=at + 1)
        for number in range(1, 21)
        for at in [number % 4 * 86_400_000]
    ]
    assert export(experiment, spans).status == 200
    tables.follow()
    lake = pytest.importorskip("deltalake")
    for name in ("traces", "spans"):
        assert tables.frame(name)["trace_id"].n_unique() == 20
        assert len(lake.DeltaTable(storage.table_uri(name)).file_uris()) == 4


def test_upkeep_merges_the_small_files_of_days(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    lake = pytest.importorskip("deltalake")
    experiment = store.api.new_experiment("load")
    for part in range(3):
        spans = [
            span(f"{3 * day + part + 1:032x}", 1, start=day * 86_400_000, note="é" * part)
            for day in range(2)
        ]
        assert export(experiment, spans).status == 200
        tables.follow()

    def files(name: str) -> int:
        return len(lake.DeltaTable(storage.table_uri(name)).file_uris())

    before = {name: tables.frame(name).sort("trace_id").to_dicts() for name in ("traces", "spans")}
    assert [len(rows) for rows in before.values()] == [6, 6]
    assert [files(name) for name in before] == [6, 6]
    monkeypatch.setattr(upkeep, "MERGED_ROWS", 1)
    upkeep.maintain_tables()
    assert [files(name) for name in before] == [4, 4], "the newest day comes first"
    upkeep.maintain_tables()
    assert [files(name) for name in before] == [2, 2]
    versions = [lake.DeltaTable(storage.table_uri(name)).version() for name in before]
    upkeep.maintain_tables()
    assert versions == [lake.DeltaTable(storage.table_uri(name)).version() for name in before]
    for name, rows in before.items():
        assert tables.frame(name).sort("trace_id").to_dicts() == rows
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_files_with_and_without_columns_are_one_table(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step writes the columns of what it writes, and reads files that lack them."""
    experiment = store.api.new_experiment("mixed")
    kinds = (
        "SELECT attributes['mlflow.spanType'] AS type, count(*) FROM system.mlflow.spans "
        "GROUP BY type ORDER BY type"
    )

    def write(number: int, kind: str, day: int = 0) -> None:
        at = day * 86_400_000
        made = [span(f"{number:032x}", n, start=at, mlflow__spanType=kind) for n in (1, 2)]
        assert export(experiment, made).status == 200
        tables.follow()

    def check(expected: dict[str, int], marked: int, plain: int) -> None:
        assert sorted(span_files.assert_columns_are_the_map()) == [False] * plain + [True] * marked
        for workspaces in (None, ["default"]):
            assert dict(tables.ask(kinds, workspaces)["rows"]) == expected
        assert tables.ask(kinds, ["team"])["rows"] == []
        assert list(pytest.importorskip("mltables.verification").verify()) == []

    with span_files.without_columns():
        write(1, "LLM")
        write(2, "TOOL", day=1)
    check({"LLM": 2, "TOOL": 2}, 0, 2)
    write(3, "TOOL")
    check({"LLM": 2, "TOOL": 4}, 1, 2)
    write(1, "AGENT")  # replaces rows of a file without columns
    check({"AGENT": 2, "TOOL": 4}, 2, 1)
    with span_files.without_columns():
        write(3, "LLM")  # replaces rows of a file with columns
        write(4, "TOOL")
    check({"AGENT": 2, "LLM": 2, "TOOL": 4}, 1, 3)
    pytest.importorskip("mltables.table_maintenance").maintain_tables()
    check({"AGENT": 2, "LLM": 2, "TOOL": 4}, 1, 1)
    with span_files.without_columns():
        write(5, "LLM", day=1)
    pytest.importorskip("mltables.table_maintenance").maintain_tables()
    check({"AGENT": 2, "LLM": 4, "TOOL": 4}, 2, 0)


def test_a_backfill_writes_the_columns(store: Store, tables: Tables) -> None:
    experiment = store.api.new_experiment("before")
    assert export(experiment, [span(TRACE, 1, mlflow__spanType="LLM")]).status == 200
    tables.stream.fresh()  # never landed
    pytest.importorskip("mltables.backfill").backfill()
    assert span_files.assert_columns_are_the_map() == [True]
    (row,) = span_files.rows(*span_files.files())
    assert row["inner_attribute_mlflow_spantype"] == "LLM"


def test_a_late_change_of_day_leaves_an_expired_trace_one_row(store: Store, tables: Tables) -> None:
    """The record of the change arrives when DynamoDB does not say any more which day is right."""
    world = TracesWorld(store, 1)
    world.new_experiment()
    (experiment,) = world.workspaces
    trace_id = f"tr-{TRACE}"
    world.traces[trace_id] = {"experiment": experiment}
    moved = start(experiment, trace_id, state="OK", request_time="2024-02-03T04:05:06Z")
    assessment = {
        "assessment_name": "good",
        "source": {"source_type": "HUMAN", "source_id": "me"},
        "feedback": {"value": True},
    }
    assert export(experiment, [span(TRACE, 1)]).status == 200
    tell("POST", f"3.0/traces/{trace_id}/assessments", {"assessment": assessment})
    tables.follow()
    tell("POST", "3.0/traces", moved)
    late = tables.stream.fresh()
    tell("PATCH", f"3.0/traces/{trace_id}/tags", {"key": "t", "value": "later"})
    tables.follow()
    assert len(tables.rows("traces")) == len(tables.rows("spans")) == 2
    world.expire()
    lander.handler({"Records": world.completed(tables.stream.fresh())}, None)
    lander.handler({"Records": late}, None)
    tables.follow()
    for table in ("traces", "assessments", "spans"):
        assert [row["request_date"] for row in tables.rows(table)] == ["2024-02-03"], table
