"""Scorers that are code, over the running product: MLflow's client registers them, the product runs
them in cages, and their assessments are those of MLflow's own container executor."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
import pytest
from mlflow.entities import Trace
from mlflow.genai.scorers import scorer

from tests.contract.code_scorer_calls import code
from tests.e2e import warm_clients
from tests.e2e.documented_ensembles import ENSEMBLES
from tests.e2e.documented_scorers import SCORERS
from tests.servers import Server, start_product, stopped

Json = dict[str, Any]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has cages"),
]
SECONDS = 240
REGISTERED = SCORERS | {made.name: made for made in ENSEMBLES}
HOST_METADATA = (
    "scorer_wall_ms",
    "scorer_cpu_ms",
    "scorer_cost_usd",
    "mlflow.assessment.scorerDigest",
)


class World(NamedTuple):
    server: Server
    experiment_id: str
    traces: list[Trace]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("code-scorers")
    before = mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "NO_PROXY": "127.0.0.1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "true",
            "MLFLOW_GENAI_EVAL_ENABLE_SCORER_TRACING": "false",
        }.items():
            patch.setenv(name, value)
        started = start_product(folder, MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS="true")
        with stopped(started) as server:
            mlflow.set_tracking_uri(server.url)
            try:
                yield _logged(server)
            finally:
                mlflow.set_tracking_uri(before)


def _logged(server: Server) -> World:
    """Two traces of one session, with spans of several types and with assessments."""
    experiment_id = mlflow.create_experiment("code scorers")
    command = [str(Path(__file__).with_name("agent_script.py")), experiment_id]
    variables = {**os.environ, "MLFLOW_TRACKING_URI": server.url}
    ended = warm_clients.run(sys.executable, "mlflow", command, Path.cwd(), variables)
    assert ended.returncode == 0, ended.stderr
    ids = json.loads(ended.stdout.splitlines()[-1])
    return World(server, experiment_id, [mlflow.get_trace(trace_id) for trace_id in ids])


def _call(server: Server, method: str, path: str, body: Json | None = None) -> Json:
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        read: Json = json.loads(answer.read() or b"{}")
    return read


def _ended(server: Server, job_id: str) -> Json:
    until = time.monotonic() + SECONDS
    while (job := _call(server, "GET", f"/ajax-api/3.0/jobs/{job_id}"))["status"] in (
        "PENDING",
        "RUNNING",
    ):
        assert time.monotonic() < until, job
        time.sleep(0.1)
    return job


@pytest.fixture(scope="module")
def versions(world: World) -> dict[str, str]:
    """The registered text of each scorer."""
    texts = {}
    for name, each in REGISTERED.items():
        registered = each.register(experiment_id=world.experiment_id)
        texts[name] = json.dumps(registered.model_dump())
    return texts


@pytest.fixture(scope="module")
def judged(world: World, versions: dict[str, str]) -> dict[str, Json]:
    """The result of each scorer's job, by scorer and trace; all jobs run at the same time."""
    submitted = {}
    for name, text in versions.items():
        body = {
            "experiment_id": world.experiment_id,
            "serialized_scorer": text,
            "scorer_name": name,
            "scorer_version": 1,
            "trace_ids": [trace.info.trace_id for trace in world.traces],
            "log_assessments": False,
        }
        [job] = _call(world.server, "POST", "/ajax-api/3.0/mlflow/scorer/invoke", body)["jobs"]
        submitted[name] = job["job_id"]
    ended = {name: _ended(world.server, job_id) for name, job_id in submitted.items()}
    assert {job["status"] for job in ended.values()} == {"SUCCEEDED"}, ended
    return {name: job["result"] for name, job in ended.items()}


@pytest.fixture(scope="module")
def executed(
    world: World, versions: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Json]:
    """What MLflow's own executor makes of the same scorers and traces."""
    script_input = {
        "scorers": versions,
        "traces": [trace.to_dict() for trace in world.traces],
        "experiment_id": world.experiment_id,
    }
    file = tmp_path_factory.mktemp("executor") / "input.json"
    file.write_text(json.dumps(script_input))
    command = [str(Path(__file__).with_name("executor_script.py")), str(file)]
    ended = warm_clients.run(sys.executable, "mlflow", command, Path.cwd(), os.environ)
    assert ended.returncode == 0, ended.stderr
    results: dict[str, Json] = json.loads(ended.stdout.splitlines()[-1])
    return results


def _comparable(result: Json) -> Json:
    """A trace's result without what differs from run to run and what only the product adds."""
    kept = []
    for assessment in result["assessments"]:
        fields = {
            key: value
            for key, value in assessment.items()
            if not key.endswith(("_time", "_id")) or key == "overrides"
        }
        (fields["feedback"].get("error") or {}).pop("stack_trace", None)
        fields["metadata"] = {
            key: value
            for key, value in (fields.get("metadata") or {}).items()
            if key not in HOST_METADATA
        }
        kept.append(fields)
    return {"assessments": kept, "failures": result["failures"]}


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_gives_what_mlflows_executor_gives(
    executed: dict[str, Json], judged: dict[str, Json], name: str
) -> None:
    product = {trace_id: _comparable(result) for trace_id, result in judged[name].items()}
    assert product == {trace_id: _comparable(result) for trace_id, result in executed[name].items()}


def test_an_evaluation_gives_expectations_and_logs_metrics(
    world: World, versions: dict[str, str]
) -> None:
    names = ["exact_match", "word_count"]
    body = {
        "experiment_id": world.experiment_id,
        "serialized_scorers": [versions[name] for name in names],
        "scorer_versions": [1, 1],
        "trace_ids": [trace.info.trace_id for trace in world.traces],
    }
    made = _call(world.server, "POST", "/ajax-api/3.0/mlflow/genai/evaluate/invoke", body)
    job = _ended(world.server, made["job_id"])
    assert job["status"] == "SUCCEEDED", job
    assert mlflow.get_run(made["run_id"]).data.metrics == {
        "exact_match/mean": 0.5,
        "word_count/mean": 3.0,
    }
    first = mlflow.get_trace(world.traces[0].info.trace_id).search_assessments("exact_match")
    assert [each.value for each in first] == [False]
    assert int(first[0].metadata["scorer_cpu_ms"]) > 0
    assert first[0].source.source_type == "CODE"


def test_a_scorer_of_the_client_that_attacks_gets_nothing(world: World) -> None:
    @scorer
    def attack(outputs: Any) -> str:
        return str(__import__("os").listdir("/"))

    registered = attack.register(experiment_id=world.experiment_id)
    body = {
        "experiment_id": world.experiment_id,
        "serialized_scorer": json.dumps(registered.model_dump()),
        "trace_ids": [world.traces[0].info.trace_id],
        "log_assessments": True,
    }
    [job] = _call(world.server, "POST", "/ajax-api/3.0/mlflow/scorer/invoke", body)["jobs"]
    [result] = _ended(world.server, job["job_id"])["result"].values()
    [failure] = result["failures"]
    assert failure["error_code"] == "SCORER_ERROR"
    assert failure["error_message"] == "[Errno 1] Operation not permitted: '/'"


def test_a_server_stops_at_once_during_a_judgement_and_goes_on_later(tmp_path: Path) -> None:
    before = mlflow.get_tracking_uri()
    with stopped(_start(tmp_path)) as server:
        mlflow.set_tracking_uri(server.url)
        try:
            experiment_id, trace_ids = _two_traces(server)
        finally:
            mlflow.set_tracking_uri(before)
        body = {
            "experiment_id": experiment_id,
            "serialized_scorer": json.dumps(code("import time\ntime.sleep(5)\nreturn 1")),
            "trace_ids": trace_ids,
            "log_assessments": True,
        }
        [job] = _call(server, "POST", "/ajax-api/3.0/mlflow/scorer/invoke", body)["jobs"]
        path = f"/ajax-api/3.0/jobs/{job['job_id']}"
        while _call(server, "GET", path)["status"] == "PENDING":
            time.sleep(0.05)
        time.sleep(1)
        started = time.monotonic()
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert time.monotonic() - started < 4
        log = server.log.read_text(encoding="utf-8")
        assert "Traceback" not in log
        assert "cannot be reached" not in log
    with stopped(_start(tmp_path)) as server:
        assert _ended(server, job["job_id"])["status"] == "SUCCEEDED"


def _start(folder: Path) -> Server:
    data = ("--data", str(folder / "data"))
    return start_product(folder, *data, MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS="true")


def _two_traces(server: Server) -> tuple[str, list[str]]:
    logged = _logged(server)
    return logged.experiment_id, [trace.info.trace_id for trace in logged.traces]
