"""Archived traces: what the API answers stays the same, whatever comes in between."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import experiments.app as experiments_app
from file_remover import app as remover
from indexer.lifecycle import file_removals, trace_archival
from indexer.verification import rebuild
from mlcore import artifacts, queues
from mlcore.db import capacity
from mlcore.db.table import table
from mlcore.repos.traces import archival, span_packs, traces
from mlcore.repos.traces.archival import ArchivalOutcome
from mlcore.system_tables import span_rows, span_source
from tests.contract.api import JSON, called
from tests.contract.archived_traces import (
    archiving,
    files,
    files_of,
    is_archived,
    packs_of,
    stored,
    tick,
    told,
)
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.full_text_setting import setting
from tests.contract.index_state import Broken, deliver, failing
from tests.contract.streams import following
from tests.contract.trace_calls import (
    Fields,
    ask,
    export,
    info,
    resource_spans,
    span,
    start,
    tell,
    whole,
)
from tests.contract.trace_story import TOLD, new_trace

__all__ = ["archiving", "files"]

pytestmark = pytest.mark.usefixtures("files")

FILTERS = (
    "trace.status = 'OK'",
    "trace.status = 'ERROR'",
    "tag.team = 'red'",
    "trace.text LIKE '%because%'",
    "span.name = 'span 2'",
    "span.content LIKE '%why%'",
    "span.attributes.`mlflow.llm.model` LIKE '%'",
    "trace.timestamp_ms > 0",
)


def found_by(experiment_id: str, condition: str) -> list[str]:
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    answer = tell("POST", "3.0/traces/search", {"locations": [location], "filter": condition})
    return [trace["trace_id"] for trace in answer.get("traces", [])]


def without_places(answer: Fields) -> Fields:
    """A trace's info or the whole trace, without the tags that say where its spans are."""
    copy: Fields = json.loads(json.dumps(answer))
    tags = copy.get("trace_info", copy)["tags"]
    tags.pop("mlflow.trace.spansLocation")
    tags.pop("mlflow.trace.archiveLocation", None)
    return copy


def answers(experiment_id: str, trace: str) -> Fields:
    """All that the API says of a trace."""
    trace_id = f"tr-{trace}"
    batch = tell("GET", "3.0/traces/batchGet", trace_ids=[trace_id])
    metrics = {
        "experiment_ids": [experiment_id],
        "view_type": "SPANS",
        "metric_name": "span_count",
        "aggregations": [{"aggregation_type": "COUNT"}],
        "dimensions": ["span_name"],
    }
    return {
        "get": without_places(whole(trace_id)),
        "batch": [without_places(listed_trace) for listed_trace in batch["traces"]],
        "info": without_places(info(trace_id)),
        "artifact": ask("GET", "/ajax-api/3.0/mlflow/get-trace-artifact", request_id=trace_id).body,
        "metrics": tell("POST", "3.0/traces/metrics", metrics),
        "rows": [
            [span_rows.row_of(content) for content in contents]
            for read in [span_source.trace_of(stored(trace), 0)]
            if read is not None
            for _, contents in span_source.contents_of([read])
        ],
        **{condition: sorted(found_by(experiment_id, condition)) for condition in FILTERS},
    }


@pytest.mark.parametrize("indexed", [False, True])
def test_every_answer_stays_the_same(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    monkeypatch.setattr(rebuild, "REQUEST_SECONDS", 0)  # no request runs beside the rebuild
    experiment_id = store.api.new_experiment("traces")
    with following(store) as stream:
        if indexed:
            setting(store, ["traces.content", "traces.tags.*"])
            rebuild.reindex(experiment_id)
        trace = told(experiment_id)
        if indexed:
            # What the indexer has not processed yet stays.
            assert archival.archive(stored(trace)) is ArchivalOutcome.LATER
            assert all("data" in item for item in packs_of(store, trace))
            deliver(stream.fresh())
        before = answers(experiment_id, trace)
        assert before["trace.text LIKE '%because%'"] == [f"tr-{trace}"]
        assert len(before["get"]["spans"]) == 6
        assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED
        assert answers(experiment_id, trace) == before
        deliver(stream.fresh())
        assert answers(experiment_id, trace) == before
    assert is_archived(trace)
    archive_uri = info(f"tr-{trace}")["tags"]["mlflow.trace.archiveLocation"]
    assert archive_uri == f"mlflow-artifacts:/.internal/traces/{experiment_id}/tr-{trace}/archived"
    assert all("data" not in item for item in packs_of(store, trace))
    assert len(files_of(files, trace)) == 2
    assert archival.archive(stored(trace)) is ArchivalOutcome.NOT_POSSIBLE


def test_spans_that_are_in_files_already(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_packs, "ITEM_BYTES", 100)
    trace = told("0")
    before, present = answers("0", trace), files_of(files, trace)
    assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED
    assert answers("0", trace) == before
    assert files_of(files, trace) == present


def test_what_an_archived_trace_refuses(store: Store) -> None:
    trace, other = told("0"), new_trace()
    archival.archive(stored(trace))
    before = store.items()
    refused = export("0", [span(other, 1), span(trace, 77)])
    assert (refused.status, refused.body["message"]) == (
        400,
        f"Cannot log spans to archived traces: 'tr-{trace}'.",
    )
    again = ask("POST", "3.0/traces", start("0", f"tr-{trace}", state="ERROR"))
    assert (again.status, again.code, again.body["message"]) == (
        400,
        "INVALID_STATE",
        f"Cannot update traces that are no longer DB-backed: 'tr-{trace}'.",
    )
    assert store.items() == before
    for key in ("mlflow.trace.spansLocation", "mlflow.trace.archiveLocation"):
        path = f"3.0/traces/tr-{trace}/tags"
        assert ask("PATCH", path, {"key": key, "value": "s3://theirs"}).status == 400
        assert ask("DELETE", path, {"key": key}).status == 400
    tell("PATCH", f"3.0/traces/tr-{trace}/tags", {"key": "mine", "value": "x"})
    assessment = {**TOLD["assessments"][0], "assessment_name": "late"}
    tell("POST", f"3.0/traces/tr-{trace}/assessments", {"assessment": assessment})
    assert info(f"tr-{trace}")["tags"]["mine"] == "x"
    assert is_archived(trace)


@pytest.mark.parametrize(
    ("fields", "tag"),
    [({"state": "IN_PROGRESS"}, ""), ({}, "mlflow.trace.archivalFailure")],
)
def test_what_is_not_archived(store: Store, fields: Fields, tag: str) -> None:
    trace = new_trace()
    if fields:
        assert export("0", [span(trace, 2, 1)]).status == 200
        tell("POST", "3.0/traces", start("0", f"tr-{trace}", **fields))
    else:
        assert export("0", [span(trace, 1)]).status == 200
        traces.write(
            stored(trace),
            lambda now: traces.TraceChange(now.info, {"tags": {tag: "MALFORMED_TRACE"}}),
        )
    assert archival.archive(stored(trace)) is ArchivalOutcome.NOT_POSSIBLE
    if tag:
        # MLflow's way to let it be tried again.
        tell("DELETE", f"3.0/traces/tr-{trace}/tags", {"key": tag})
        assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED


def test_without_spans_in_the_table(store: Store) -> None:
    trace = new_trace()
    tell("POST", "3.0/traces", start("0", f"tr-{trace}", state="OK"))
    assert archival.archive(stored(trace)) is ArchivalOutcome.NOT_POSSIBLE


def test_killed_at_every_call(store: Store) -> None:
    calm = told("0")
    before = answers("0", calm)["get"]["spans"]
    assert len(before) == 6
    for at in itertools.count():
        trace = told("0")
        expected = whole(f"tr-{trace}")["spans"]
        was_killed = True
        try:
            with failing(at):
                archival.archive(stored(trace))
                was_killed = False
        except Broken:
            pass
        assert whole(f"tr-{trace}")["spans"] == expected
        if not was_killed:
            break
        assert archival.archive(stored(trace)) in (
            ArchivalOutcome.ARCHIVED,
            ArchivalOutcome.NOT_POSSIBLE,
        )
        assert is_archived(trace)
        assert whole(f"tr-{trace}")["spans"] == expected
    assert at > 4


def test_a_file_that_was_not_stored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = told("0")
    before = answers("0", trace)
    for broken in (lambda _key: None, lambda _key: b"cut"):
        with monkeypatch.context() as patch:
            patch.setattr(artifacts.store(), "get", broken)
            with pytest.raises(span_packs.SpansMissing):
                archival.archive(stored(trace))
        assert answers("0", trace) == before


@pytest.fixture
def removing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages to the file remover arrive at once."""

    def send(_queue: str, messages: list[queues.QueueMessage]) -> None:
        records = [
            {"messageId": str(number), "body": message.body}
            for number, message in enumerate(messages)
        ]
        assert remover.handler({"Records": records}, None) == {"batchItemFailures": []}

    monkeypatch.setenv(file_removals.QUEUE, "queue")
    monkeypatch.setattr(queues, "send", send)
    monkeypatch.setattr(file_removals, "_time_ms", lambda _: 1 << 53)


def expire(store: Store, experiment_id: str, trace: str) -> None:
    with following(store, latest=True) as stream:
        key = {"PK": {"S": f"EXP#{experiment_id}"}, "SK": {"S": f"T#tr-{trace}"}}
        store.direct.delete_item(TableName=store.table, Key=key)
        deliver(stream.fresh())


def test_files_of_a_workspace(
    store: Store, files: Path, removing: None, archiving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "lab")
    lab = {"x-mlflow-workspace": "lab"}
    made = called(
        experiments_app.handler,
        "POST",
        "/api/2.0/mlflow/experiments/create",
        {"name": "theirs"},
        {**JSON, **lab},
    )
    experiment_id = made.body["experiment_id"]
    body = resource_spans([span(trace := new_trace(), 1)])
    headers = {"x-mlflow-experiment-id": experiment_id, **lab}
    assert ask("POST", "/v1/traces", body, headers).status == 200
    tick()
    path = f"3.0/traces/tr-{trace}"
    assert ask("GET", path).status == 404
    shown = ask("GET", path, headers=lab).body["trace"]["trace_info"]
    assert shown["tags"]["mlflow.trace.spansLocation"] == "ARCHIVE_REPO"
    read = ask("GET", "3.0/traces/get", headers=lab, trace_id=f"tr-{trace}")
    assert len(read.body["trace"]["spans"]) == 1
    assert ask("GET", "3.0/traces/get", trace_id=f"tr-{trace}").status == 404
    assert len(files_of(files, trace)) == 1
    # Its archive goes with it, wherever its experiment was moved.
    expire(store, experiment_id, trace)
    assert files_of(files, trace) == []


def test_deletion_and_expiry_reach_the_files(
    store: Store, files: Path, removing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, expired = told("0"), told("0")
    for trace in (deleted, expired):
        archival.archive(stored(trace))
        assert len(files_of(files, trace)) == 2
    body = {"experiment_id": "0", "request_ids": [f"tr-{deleted}"]}
    assert tell("POST", "3.0/traces/delete-traces", body) == {"traces_deleted": 1}
    assert files_of(files, deleted) == []
    expire(store, "0", expired)
    assert files_of(files, expired) == []
    # The trace goes while its spans move: the pass itself asks for the removal, before it looks at
    # other traces, because it may be killed.
    moved = told("0")
    experiment = stored(moved).experiment
    move = span_packs.move_to_files

    def meanwhile(owner: span_packs.Owner) -> bool:
        before = list(table.query_all("EXP#0", prefix=f"T#tr-{moved}"))
        traces.delete([stored(moved)])
        for item in before:
            if "data" in item:
                span_packs._move(owner, item)
        return True

    monkeypatch.setattr(span_packs, "move_to_files", meanwhile)
    record = stored(moved)
    assert record.experiment == experiment
    assert trace_archival._archive(record) is ArchivalOutcome.REMOVED
    assert files_of(files, moved) == []
    monkeypatch.setattr(span_packs, "move_to_files", move)


def test_budget(store: Store) -> None:
    """A trace of one pack: a Query of its packs, the pack without its spans, the trace."""
    trace = new_trace()
    assert export("0", [span(trace, 1)]).status == 200
    record = stored(trace)
    with table.measure() as measured:
        assert archival.archive(record) is ArchivalOutcome.ARCHIVED
    assert measured.round_trips == 3
    assert measured.write_units <= 8
    assert measured.read_units <= 1
    assert capacity.last_measurement() is not None
