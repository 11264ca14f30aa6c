"""Judges over the running product: MLflow's client registers one, its UI's call lets it judge, and
the client sees what it said."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import mlflow
import pytest
from mlflow.entities import AssessmentSourceType
from mlflow.genai.judges import make_judge

from tests.contract.trace_calls import resource_spans, span
from tests.doubles import providers
from tests.e2e.gateway_endpoint import call, configure
from tests.servers import Server, start_product, stopped

Json = dict[str, Any]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SECONDS = 60


@pytest.fixture(scope="module")
def open_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A product whose gateway may call servers of this machine."""
    folder = tmp_path_factory.mktemp("judges")
    started = start_product(
        folder,
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http,https",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with stopped(started) as server:
        yield server


def test_a_judge_of_the_client_judges_three_traces(
    open_gateway: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def answer(request: providers.Asked) -> providers.Told:
        response = providers.openai(request)
        fine = "wrong" not in str(request.body["messages"][-1])
        content = json.dumps({"result": fine, "rationale": "It reads so."})
        response.body["choices"][0]["message"]["content"] = content
        return response

    with providers.serving(answer) as provider:
        configure(open_gateway, f"{provider.url}/v1")
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(open_gateway.url)
        try:
            judged(open_gateway)
        finally:
            mlflow.set_tracking_uri(before)
        assert len(provider.asked) == 3


def judged(server: Server) -> None:
    experiment_id = mlflow.create_experiment("judged")
    mlflow.set_experiment(experiment_id=experiment_id)
    judge = make_judge(
        name="fine",
        instructions="Is {{ outputs }} a fine answer to {{ inputs }}?",
        model="gateway:/chat",
        feedback_value_type=bool,
    )
    registered = judge.register(experiment_id=experiment_id)
    trace_ids = []
    for number, name in enumerate(("right", "also right", "wrong")):
        trace = f"{0xE000 + number:032x}"
        attributes: Json = {
            "mlflow__spanInputs": {"question": "What?"},
            "mlflow__spanOutputs": name,
        }
        spans = resource_spans([span(trace, 1, **attributes)])
        call(server, "POST", "/v1/traces", spans, **{"x-mlflow-experiment-id": experiment_id})
        trace_ids.append(f"tr-{trace}")
    request = {
        "experiment_id": experiment_id,
        "serialized_scorer": json.dumps(registered.model_dump()),
        "trace_ids": trace_ids,
        "log_assessments": True,
    }
    [job] = call(server, "POST", "/ajax-api/3.0/mlflow/scorer/invoke", request)["jobs"]
    until = time.monotonic() + SECONDS
    while (done := call(server, "GET", f"/ajax-api/3.0/jobs/{job['job_id']}"))["status"] in (
        "PENDING",
        "RUNNING",
    ):
        assert time.monotonic() < until, done
        time.sleep(0.1)
    assert done["status"] == "SUCCEEDED", done
    values = []
    for trace_id in trace_ids:
        [feedback] = mlflow.get_trace(trace_id).info.assessments
        assert feedback.source.source_type == AssessmentSourceType.LLM_JUDGE
        assert (feedback.name, feedback.rationale) == ("fine", "It reads so.")
        values.append(feedback.value)
    assert values == [True, True, False]
