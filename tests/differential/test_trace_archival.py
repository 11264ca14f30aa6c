"""Archived traces of stock MLflow and of the product: the same answers after it, and the same
refusals."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from operate.transfer import traces as transferred
from operate.transfer.mlflow_client import Server
from operate.transfer.source_reader import SourceReader
from tests.differential.stock import sqlalchemy_store
from tests.differential.trace_pair import (
    ID,
    TOLD,
    VALUES,
    Side,
    Two,
    attribute,
    comparable,
    new_id,
    span,
    text,
)
from tests.engines import ROOT, memory_folder
from tests.servers import announced_table, environment, start_product, start_stock, stopped

HOURS = {"2h": 2, "1d": 24, "9d": 216}
PLACE = "mlflow.trace.archiveLocation"
EXPERIMENT = f"/api/2.0/mlflow/experiments/get?experiment_id={ID}"
CONFIG = """trace_archival:
  enabled: true
  location: file://{folder}/archive
  retention: 1d
"""
PASS = """
import os
from local import environment
from local.store import store
store.register()
environment.prepare((), os.environ["AWS_ENDPOINT_URL_DYNAMODB"], own_store=True)
from indexer.lifecycle import trace_archival
print(trace_archival.run())
"""

Archive = Callable[[], None]


@pytest.fixture(scope="module")
def archiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Two, Archive]]:
    """Both servers, which archive what is older than a day, and what makes both do it now."""
    ours = tmp_path_factory.mktemp("ours")
    data, files = ours / "data", ours / "files"
    with memory_folder() as folder:
        config = folder / "archival.yaml"
        config.write_text(CONFIG.format(folder=folder))
        settings = ("--parameter", "TraceArchivalRetention=1d", "--data", str(data))
        with (
            stopped(start_stock(folder, "--trace-archival-config", str(config))) as stock,
            stopped(start_product(ours, *settings, ARTIFACT_FOLDER=str(files))) as product,
        ):

            def archive() -> None:
                store = sqlalchemy_store.SqlAlchemyStore(
                    f"sqlite:///{folder / 'mlflow.db'}", str(folder / "artifacts")
                )
                count = store.archive_traces(
                    resolved_trace_archival_location=f"file://{folder}/archive",
                    broader_retention="1d",
                )
                command = [sys.executable, "-c", PASS]
                known = environment(
                    AWS_ENDPOINT_URL_DYNAMODB=announced_table(product),
                    ARTIFACT_FOLDER=str(files),
                    TRACE_ARCHIVAL_RETENTION="1d",
                    PYTHONPATH=os.pathsep.join(
                        str(ROOT / part) for part in ("functions", "layers/core/python", ".")
                    ),
                )
                made = subprocess.run(
                    command, env=known, cwd=ROOT, capture_output=True, text=True, check=False
                )
                assert made.returncode == 0, made.stderr[-2000:]
                assert int(made.stdout.split()[-1]) == count

            yield Two(stock.url, product.url), archive


def read(side: Side, path: str) -> tuple[int, Any]:
    """An answer without the place of the archive, which is each server's own, and without the
    order of attributes, which MLflow's archive does not keep."""
    status, body, _ = side.ask("GET", path)
    return status, comparable(_unplaced(body))


def _unplaced(value: Any) -> Any:
    if isinstance(value, list):
        return [_unplaced(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("key") == PLACE:
        return {**value, "value": "*"}
    return {key: "*" if key == PLACE else _unplaced(item) for key, item in value.items()}


def experiment_of(side: Side) -> dict[str, Any]:
    experiment: dict[str, Any] = side.ask("GET", EXPERIMENT)[1]["experiment"]
    return experiment


def retentions(two: Two) -> list[str]:
    return [
        experiment_of(side)["effective_trace_archival_retention"]
        for side in (two.stock, two.product)
    ]


def tags_of(side: Side) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in experiment_of(side).get("tags", [])}


def reads(trace_id: str) -> list[str]:
    return [
        f"/api/3.0/mlflow/traces/{trace_id}",
        f"/api/3.0/mlflow/traces/get?trace_id={trace_id}",
        f"/api/3.0/mlflow/traces/batchGet?trace_ids={trace_id}",
        f"/api/2.0/mlflow/traces/{trace_id}/info",
        f"/ajax-api/2.0/mlflow/get-trace-artifact?request_id={trace_id}",
    ]


def spans_of(answer: Any) -> Any:
    """The spans of whichever answer has some."""
    body = answer[1]
    return body.get("trace", body).get("spans") if isinstance(body, dict) else body


def test_the_same_before_and_after(archiving: tuple[Two, Archive]) -> None:
    two, archive = archiving
    assert retentions(two) == ["1d", "1d"]
    trace, running = new_id(), new_id()
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    root = [
        text("mlflow.spanInputs", {"messages": [{"role": "user", "content": "hey"}]}),
        text("mlflow.spanOutputs", "out"),
        text("mlflow.traceTag.team", "red"),
        attribute("n", {"intValue": 2**53}),
        *VALUES,
    ]
    two.export(
        [
            span(trace, 1, 0, 0, *root, status={"code": 1}),
            span(trace, 2, 1, 10, text("mlflow.chat.tokenUsage", usage)),
        ],
        [text("service.name", "svc")],
    )
    two.export([span(trace, 3, 2, 20, status={"code": 2, "message": "m"})])
    reported: dict[str, Any] = {**copy.deepcopy(TOLD), "trace_id": f"tr-{trace}"}
    reported["trace_metadata"]["mlflow.trace.sizeStats"] = '{"num_spans": 3}'
    body = {"trace": {"trace_info": reported}}
    for side in (two.stock, two.product):
        assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200
    two.export([span(running, 2, 1, 0)])
    state = {**copy.deepcopy(TOLD), "trace_id": f"tr-{running}", "state": "IN_PROGRESS"}
    for side in (two.stock, two.product):
        unfinished = {"trace": {"trace_info": state}}
        assert side.ask("POST", "/api/3.0/mlflow/traces", unfinished)[0] == 200
    before = {path: read(two.product, path) for path in reads(f"tr-{trace}")}
    archive()
    after = {path: read(two.product, path) for path in reads(f"tr-{trace}")}
    for path, answer in after.items():
        assert spans_of(answer) == spans_of(before[path]), path
        assert answer[0] == 200
        stock = read(two.stock, path)
        if "get-trace-artifact" not in path:
            assert answer == stock, path
        assert len(spans_of(stock) or ()) == len(spans_of(answer) or ())
    tags = two.product.ask("GET", f"/api/3.0/mlflow/traces/tr-{trace}")[1]["trace"]["trace_info"]
    assert tags["tags"]["mlflow.trace.spansLocation"] == "ARCHIVE_REPO"
    for path in reads(f"tr-{running}"):
        assert read(two.product, path) == read(two.stock, path), path

    # What an import reads: the spans, as of a trace that is in the server's database.
    for side in (two.stock, two.product):
        server = Server(side.url)
        fields = server.get(f"api/3.0/mlflow/traces/tr-{trace}")["trace"]["trace_info"]
        imported = transferred.entity(SourceReader(server, str), fields)
        assert imported.tags["mlflow.trace.spansLocation"] == "TRACKING_STORE"
        assert PLACE not in imported.tags
        assert len(transferred.spans_of(server, imported)) == 3

    # Refusals: the same words; MLflow's server answers some with 500.
    for method, path, sent in (
        ("POST", "/api/3.0/mlflow/traces", body),
        ("PATCH", f"/api/3.0/mlflow/traces/tr-{trace}/tags", {"key": PLACE, "value": "x"}),
    ):
        answers = [side.ask(method, path, sent) for side in (two.stock, two.product)]
        assert answers[0][1]["message"] == answers[1][1]["message"]
        assert answers[0][1]["error_code"] == answers[1][1]["error_code"]
        assert answers[1][0] == 400
    two.same("PATCH", f"/api/3.0/mlflow/traces/tr-{trace}/tags", {"key": "k", "value": "v"})
    results: dict[str, Any] = {
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": ID}}],
        "filter": "tag.k = 'v' AND span.name LIKE '%'",
    }
    for side in (two.stock, two.product):
        answer = side.ask("POST", "/api/3.0/mlflow/traces/search", results)[1]
        assert [trace_info["trace_id"] for trace_info in answer["traces"]] == [f"tr-{trace}"]
    gone = {"experiment_id": ID, "request_ids": [f"tr-{trace}", f"tr-{running}"]}
    two.same("POST", "/api/2.0/mlflow/traces/delete-traces", gone)
    for path in reads(f"tr-{trace}"):
        assert read(two.product, path)[0] == read(two.stock, path)[0]


def test_archive_now(archiving: tuple[Two, Archive]) -> None:
    two, archive = archiving
    traces = [new_id(), new_id()]
    for trace in traces:
        two.export([span(trace, 1, 0, 0, text("mlflow.spanInputs", trace))])
    for value in ("{}", '{"older_than": "5d"}', "{", '{"older_than": 5}'):
        tag = {"experiment_id": ID, "key": "mlflow.trace.archiveNow", "value": value}
        two.same("POST", "/api/2.0/mlflow/experiments/set-experiment-tag", tag)
    archive()
    assert tags_of(two.stock) == tags_of(two.product) == {}
    for trace in traces:
        path = f"/api/3.0/mlflow/traces/tr-{trace}"
        assert read(two.product, path) == read(two.stock, path)
    for retention in ("2h", "9d"):
        tag = {
            "experiment_id": ID,
            "key": "mlflow.trace.archivalRetention",
            "value": json.dumps({"type": "duration", "value": retention}),
        }
        two.same("POST", "/api/2.0/mlflow/experiments/set-experiment-tag", tag)
        assert retentions(two) == [min(retention, "1d", key=HOURS.__getitem__)] * 2


def test_server_info(archiving: tuple[Two, Archive]) -> None:
    two, _ = archiving
    answers = [
        side.ask("GET", "/api/3.0/mlflow/server-info")[1] for side in (two.stock, two.product)
    ]
    assert [answer["trace_archival_enabled"] for answer in answers] == [True, True]
