"""The demo that the UI's first button makes: there at once, once, whole, and gone when it is told
to; made in the name of whoever asks."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import SpanLogLevel

from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PARTS = [
    *("traces", "prompts", "evaluation", "judges"),
    *("issues", "review_queues", "saved_views", "mcp_server", "training"),
]
ANN = ("ann", "a-password-of-ann")


class Caller:
    def __init__(self, url: str, login: tuple[str, str]) -> None:
        self._url = url
        self._headers = {
            "authorization": "Basic " + b64encode(":".join(login).encode()).decode(),
            "content-type": "application/json",
        }

    def post(self, path: str, **fields: Any) -> Any:
        body = json.dumps(fields).encode()
        request = urllib.request.Request(self._url + path, body, self._headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def demo(self, what: str, **fields: Any) -> Any:
        return self.post(f"/ajax-api/3.0/mlflow/demo/{what}", **fields)


def counts(client: MlflowClient) -> dict[str, Any]:
    store = client._tracking_client.store
    experiment = client.get_experiment_by_name("MLflow Demo")
    training = client.get_experiment_by_name("MLflow Demo: training")
    assert experiment is not None
    assert training is not None
    traces = client.search_traces(locations=[experiment.experiment_id], max_results=100)
    runs = client.search_runs([training.experiment_id])
    return {
        "traces": sorted(trace.info.trace_id for trace in traces),
        "spans": sum(len(trace.data.spans) for trace in traces),
        "levels": {span.log_level for trace in traces for span in trace.data.spans},
        "sessions": len({trace.info.trace_metadata["mlflow.trace.session"] for trace in traces}),
        "costs": sum("mlflow.trace.cost" in trace.info.trace_metadata for trace in traces),
        "assessments": sum(len(trace.info.assessments) for trace in traces),
        "runs": sorted((run.info.run_name, run.info.status) for run in runs),
        "points": len(client.get_metric_history(runs[0].info.run_id, "val_loss")),
        "champion": client.get_model_version_by_alias("mlflow-demo-classifier", "champion").version,
        "prompt": client.load_prompt("prompts:/mlflow-demo-answer@production").version,
        "datasets": len(client.search_datasets(experiment_ids=[experiment.experiment_id])),
        "evaluations": [
            (run.info.run_name, run.info.status, sorted(run.data.metrics.items()))
            for run in client.search_runs([experiment.experiment_id])
        ],
        "issues": [issue.name for issue in store.search_issues(experiment.experiment_id)],
        "mcp": [
            [endpoint.url for endpoint in server.access_endpoints]
            for server in store.search_mcp_servers()
        ],
        "queues": sorted(
            (
                queue.name,
                sorted(item.status for item in store.list_review_queue_items(queue.queue_id)),
            )
            for queue in store.list_review_queues(experiment.experiment_id)
        ),
    }


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stopped(start_product(tmp_path, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])) as server:
        made = {"username": ANN[0], "password": ANN[1]}
        Caller(server.url, ADMIN).post("/api/2.0/mlflow/users/create", **made)
        caller = Caller(server.url, ANN)
        for name, value in zip(("USERNAME", "PASSWORD"), ANN, strict=True):
            monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
        client = MlflowClient(server.url, server.url)

        # A part alone first, then the others; nothing is made twice.
        began = time.monotonic()
        first = caller.demo("generate", features=["prompts"])
        assert (first["status"], first["features_generated"]) == ("created", ["prompts"])
        rest = caller.demo("generate")
        assert rest["features_generated"] == [part for part in PARTS if part != "prompts"]
        assert time.monotonic() - began < 29, "API Gateway waits no longer"
        whole = counts(client)
        assert whole["levels"] == {SpanLogLevel.INFO, SpanLogLevel.ERROR}
        assert (len(whole["traces"]), whole["sessions"], whole["costs"]) == (9, 5, 8)
        assert (whole["assessments"], len(whole["runs"]), whole["points"]) == (27, 6, 40)
        assert (whole["champion"], whole["prompt"], whole["datasets"]) == ("2", 3, 1)
        again = caller.demo("generate")
        assert (again["status"], again["features_generated"]) == ("exists", [])

        # As if the last request had died before it said so, with a run unfinished and a version
        # missing.
        for part in ("traces", "evaluation", "issues", "review_queues", "mcp_server", "training"):
            client.delete_experiment_tag(again["experiment_id"], f"mlflow.demo.version.{part}")
        version = client.get_model_version("mlflow-demo-classifier", "2")
        client.delete_model_version(version.name, version.version)
        client.update_run(str(version.run_id), status="RUNNING")
        remark, trace = next(
            (assessment, trace.info.trace_id)
            for trace in client.search_traces(locations=[again["experiment_id"]])
            for assessment in trace.info.assessments
            if assessment.name == "helpful"
        )
        store = client._tracking_client.store
        store.delete_assessment(trace, str(remark.assessment_id))
        assert caller.demo("generate")["features_generated"] == [
            part for part in PARTS if part not in ("prompts", "judges", "saved_views")
        ]
        assert counts(client) == {**whole, "champion": "3"}  # numbers are not given twice

        with pytest.raises(urllib.error.HTTPError) as refused:
            caller.demo("delete")
        assert refused.value.code == 403
        refused.value.close()
        administrator = Caller(server.url, ADMIN)
        # As if a deletion had died before it deleted what it had renamed.
        training = client.get_experiment_by_name("MLflow Demo: training")
        assert training is not None
        client.rename_experiment(training.experiment_id, f"{training.name} (deleted 01)")
        assert administrator.demo("delete")["features_deleted"] == PARTS
        left = [each.name for each in client.search_experiments()]
        assert [name for name in left if name.startswith("MLflow Demo")] == []
        assert client.search_registered_models() == []
        assert administrator.demo("delete")["features_deleted"] == []
        anew = caller.demo("generate")
        assert anew["experiment_id"] != again["experiment_id"]
        # A login that is none makes nothing.
        with pytest.raises(urllib.error.HTTPError) as refused:
            Caller(server.url, ("ann", "wrong")).demo("generate")
        assert refused.value.code == 401
        refused.value.close()
