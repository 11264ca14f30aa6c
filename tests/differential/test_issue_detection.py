"""Issues detected by stock MLflow's pipeline and by the product, with a model that gives both the
same answers: the same issues, links and tags."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.contract.trace_calls import resource_spans, span
from tests.differential.recorded_outcomes import outcome
from tests.doubles import detective, providers
from tests.e2e.gateway_endpoint import call, configure
from tests.engines import memory_folder
from tests.servers import Server, environment, start_product, start_stock, stopped

Json = dict[str, Any]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SCRIPT = Path(__file__).parent / "detection_script.py"
CATEGORIES = ["correctness", "execution"]
ANSWERS = ("fine", "WRONG one", "WRONG two", "CRASH one", "CRASH two")
SECONDS = 120


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = start_product(
        tmp_path_factory.mktemp("detections"),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http,https",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with stopped(started) as server:
        yield server


def sessions(server: Server) -> tuple[str, list[str]]:
    """An experiment, and its traces, each of a session of its own."""
    made = call(server, "POST", "/api/2.0/mlflow/experiments/create", {"name": uuid4().hex})
    experiment_id, traces = made["experiment_id"], []
    for number, text in enumerate(ANSWERS):
        trace = uuid4().hex
        attributes: Json = {
            "mlflow__spanInputs": "What?",
            "mlflow__spanOutputs": text,
            "session__id": f"s{number}",
        }
        at = 1_700_000_000_000 + number * 1_000
        spans = resource_spans([span(trace, 1, start=at, end=at + 5, **attributes)])
        call(server, "POST", "/v1/traces", spans, **{"x-mlflow-experiment-id": experiment_id})
        traces.append(f"tr-{trace}")
    return experiment_id, traces


def detect_here(server: Server, experiment_id: str, traces: list[str]) -> Json:
    begun = call(
        server,
        "POST",
        "/ajax-api/3.0/mlflow/issues/invoke",
        {
            "experiment_id": experiment_id,
            "trace_ids": traces,
            "categories": CATEGORIES,
            "provider": "openai",
            "endpoint_name": "chat",
        },
    )
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        job = call(server, "GET", f"/ajax-api/3.0/mlflow/jobs/{begun['job_id']}")
        if job["status"] not in ("PENDING", "RUNNING"):
            assert job["status"] == "SUCCEEDED", job
            return {"run_id": begun["run_id"], "result": job["result"]}
        time.sleep(0.2)
    raise AssertionError("the job does not end")


def detect_with_stock(url: str, experiment_id: str, traces: list[str], provider: str) -> Json:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), url, experiment_id, ",".join(CATEGORIES), ",".join(traces)],
        env=environment(
            OPENAI_API_KEY="sk-0123456789",
            OPENAI_API_BASE=f"{provider}/v1",
            NO_PROXY="127.0.0.1",
            MLFLOW_DISABLE_TELEMETRY="true",
        ),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    made: Json = json.loads(done.stdout.strip().splitlines()[-1])
    return made


def seen(server: Server, experiment_id: str, traces: list[str], done: Json) -> Json:
    """What a detection has left, without ids and times."""
    search = {"experiment_id": experiment_id, "include_trace_count": True}
    issues = call(server, "POST", "/ajax-api/3.0/mlflow/issues/search", search)["issues"]
    names = {each["issue_id"]: each["name"] for each in issues}
    assert {each["source_run_id"] for each in issues} == {done["run_id"]}
    run = call(server, "GET", f"/api/2.0/mlflow/runs/get?run_id={done['run_id']}")["run"]
    tags = {each["key"]: each["value"] for each in run["data"]["tags"]}
    kept = ("name", "description", "status", "severity", "root_causes", "categories")
    return {
        "issues": [{name: each[name] for name in (*kept, "trace_count")} for each in issues],
        "links": [links(server, trace, names) for trace in traces],
        "status": run["info"]["status"],
        "tags": {name: tags[name] for name in ("mlflow.runType", "total_traces_analyzed")},
        "result": {
            name: value
            for name, value in done["result"].items()
            if name not in ("summary", "total_cost_usd")
        },
    }


def links(server: Server, trace: str, names: dict[str, str]) -> list[Json]:
    """The assessments of a trace."""
    info = call(server, "GET", f"/api/3.0/mlflow/traces/{trace}")["trace"]["trace_info"]
    rows = []
    for each in info.get("assessments", []):
        row = {name: each.get(name) for name in ("rationale", "feedback", "issue")}
        row["source_type"] = each["source"]["source_type"]
        row["name"] = names.get(each["assessment_name"], each["assessment_name"])
        metadata = each.get("metadata", {})
        row["session"] = metadata.get("mlflow.trace.session")
        evidence = json.loads(metadata.get("mlflow.issue.evidence", "null"))
        row["evidence"] = evidence
        if each.get("issue"):
            assert each["span_id"] == evidence["steps"][0]["span_id"]
            for step in evidence["steps"]:
                del step["span_id"]
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["name"]))


def test_both_detect_the_same(product: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with providers.serving(detective.answer) as provider:

        def of_stock() -> Json:
            with memory_folder() as folder, stopped(start_stock(folder)) as stock:
                experiment_id, traces = sessions(stock)
                done = detect_with_stock(stock.url, experiment_id, traces, provider.url)
                return seen(stock, experiment_id, traces, done)

        expected = outcome(Path(__file__), of_stock)
        configure(product, f"{provider.url}/v1")
        experiment_id, traces = sessions(product)
        done = detect_here(product, experiment_id, traces)
        assert seen(product, experiment_id, traces, done) == expected
    assert [each["trace_count"] for each in expected["issues"]] == [2, 2]
    assert done["result"]["total_cost_usd"] > 0
