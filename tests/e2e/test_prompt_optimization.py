"""An optimization of a prompt over the running product: MLflow's client registers prompt, dataset
and scorers, MLflow's protobuf messages start and show the job, and the client loads the new
version."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import mlflow
import pytest
from mlflow.genai import datasets, scorer
from mlflow.genai.judges import make_judge
from mlflow.protos import prompt_optimization_pb2 as optimization
from mlflow.protos import service_pb2 as service
from mlflow.protos.jobs_pb2 import JOB_STATUS_COMPLETED, JOB_STATUS_IN_PROGRESS
from mlflow.utils.proto_json_utils import message_to_json, parse_dict

from tests.doubles import providers
from tests.e2e.gateway_endpoint import call, configure
from tests.servers import Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SECONDS = 90
JOBS = "/api/3.0/mlflow/prompt-optimization/jobs"
GOOD = "Name the capital of {{ country }}, and nothing else."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A product whose gateway may call servers of this machine, and that runs scorers' code."""
    started = start_product(
        tmp_path_factory.mktemp("optimization"),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http,https",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS="true",
    )
    with stopped(started) as running:
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(running.url)
        try:
            yield running
        finally:
            mlflow.set_tracking_uri(before)


def answer(request: providers.Asked) -> providers.Told:
    """The model behind the endpoint: as it is prompted, judged by, or asked for a better prompt."""
    response = providers.openai(request)
    first, last = (str(request.body["messages"][at]["content"]) for at in (0, -1))
    if first.startswith("You improve"):
        content = json.dumps({"prompt": GOOD})
    elif first.startswith("You judge"):
        is_short = "It depends" not in last.partition("outputs")[2]
        content = json.dumps({"result": is_short, "rationale": "By its length."})
    else:
        capitals = {"France": "Paris", "Italy": "Rome", "Peru": "Lima"}
        country = next(name for name in capitals if name in last)
        content = capitals[country] if "nothing else" in last else "It depends."
    response.body["choices"][0]["message"]["content"] = content
    return response


def test_a_prompt_gets_better(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    experiment_id = mlflow.create_experiment("optimized")
    mlflow.set_experiment(experiment_id=experiment_id)
    with providers.serving(answer) as provider:
        configure(server, f"{provider.url}/v1")
        prompt = mlflow.genai.register_prompt(
            name="capitals",
            template="Say something about {{ country }}.",
            model_config={"provider": "gateway", "model_name": "chat"},
        )
        dataset = datasets.create_dataset(name="countries", experiment_id=experiment_id)
        dataset.merge_records(
            [
                {"inputs": {"country": "France"}, "expectations": {"expected_response": "Paris"}},
                {"inputs": {"country": "Italy"}, "expectations": {"expected_response": "Rome"}},
                {"inputs": {"country": "Peru"}, "expectations": {"expected_response": "Lima"}},
            ]
        )
        short = make_judge(
            name="short",
            instructions="Is {{ outputs }} a short answer?",
            model="gateway:/chat",
            feedback_value_type=bool,
        )
        short.register(experiment_id=experiment_id)

        @scorer
        def exact(outputs: Any, expectations: Any) -> bool:
            return bool(outputs == expectations["expected_response"])

        exact.register(experiment_id=experiment_id)
        request = service.CreatePromptOptimizationJob(
            experiment_id=experiment_id,
            source_prompt_uri=prompt.uri,
            config=optimization.PromptOptimizationJobConfig(
                optimizer_type=optimization.OPTIMIZER_TYPE_GEPA,
                dataset_id=dataset.dataset_id,
                scorers=["short", "exact"],
                optimizer_config_json=json.dumps(
                    {"reflection_model": "gateway:/chat", "max_metric_calls": 20}
                ),
            ),
        )
        body = json.loads(message_to_json(request))
        created = service.CreatePromptOptimizationJob.Response()
        parse_dict(call(server, "POST", JOBS, body), created)
        job = finished(server, created.job.job_id)
    assert job.state.status == JOB_STATUS_COMPLETED, job
    assert dict(job.initial_eval_scores) == {"aggregate": 0.0, "short": 0.0, "exact": 0.0}
    assert dict(job.final_eval_scores) == {"aggregate": 1.0, "short": 1.0, "exact": 1.0}
    assert job.optimized_prompt_uri == "prompts:/capitals/2"
    better = mlflow.genai.load_prompt(job.optimized_prompt_uri)
    assert better.template == GOOD
    assert better.model_config == {"provider": "gateway", "model_name": "chat"}
    run = mlflow.get_run(job.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["final_eval_score"] == 1.0
    table = mlflow.load_table("prompt_candidates/iteration_1/eval_results.json", [job.run_id])
    assert sorted(table["output"]) == ["Lima", "Paris", "Rome"]
    text = mlflow.artifacts.load_text(
        f"{run.info.artifact_uri}/prompt_candidates/iteration_1/capitals.txt"
    )
    assert text == GOOD
    response = service.SearchPromptOptimizationJobs.Response()
    parse_dict(call(server, "GET", f"{JOBS}/search?experiment_id={experiment_id}"), response)
    assert [each.job_id for each in response.jobs] == [job.job_id]
    assert call(server, "DELETE", f"{JOBS}/{job.job_id}") == {}
    assert mlflow.get_run(job.run_id).info.lifecycle_stage == "deleted"


def finished(server: Server, job_id: str) -> optimization.PromptOptimizationJob:
    """The job once it has ended."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        shown = service.GetPromptOptimizationJob.Response()
        parse_dict(call(server, "GET", f"{JOBS}/{job_id}"), shown)
        if shown.job.state.status > JOB_STATUS_IN_PROGRESS:
            return shown.job
        time.sleep(0.2)
    raise AssertionError(f"the job {job_id} did not end")
