"""What MLflow's client does with the local runner it does with the deployment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import sync_playwright

from operate.restore import adoption
from tests.browser import chromium
from tests.browser.visitor import SCREENSHOTS, Visitor
from tests.e2e.clients import CLIENT_SCRIPT, CURRENT, FILES_SCRIPT, LARGE_FILE_SCRIPT, SCRIPTS
from tests.receiver import Receiver, receiving
from tests.rehearsal import front
from tests.rehearsal.stack import NAME, Stack
from tests.servers import ADMIN, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


LARGE: Final = int(os.environ.get("LARGE_FILE_BYTES", "12000000"))


def client(
    stack: Stack, script: Path, folder: Path, *arguments: str, seconds: float = 500, **more: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(script), stack.url, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=folder,
        env=environment(
            MLFLOW_TRACKING_USERNAME=ADMIN[0],
            MLFLOW_TRACKING_PASSWORD=ADMIN[1],
            **{"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", **more},
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok {CURRENT}" in done.stdout, done.stdout


def test_runs(stack: Stack, tmp_path: Path) -> None:
    client(stack, CLIENT_SCRIPT, tmp_path, "rehearsed runs")


def test_files(stack: Stack, tmp_path: Path) -> None:
    client(stack, FILES_SCRIPT, tmp_path, "12000000", "3")


@pytest.mark.timeout(600 + LARGE // 2_000_000)
def test_a_large_file(stack: Stack, tmp_path: Path) -> None:
    """By a client with no variable but its login: in parts to the bucket, and back."""
    most = 500 + LARGE / 2_000_000
    retries = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "7"}
    client(stack, LARGE_FILE_SCRIPT, tmp_path, str(LARGE), seconds=most, **retries)


def test_prompts(stack: Stack, tmp_path: Path) -> None:
    client(stack, SCRIPTS / "prompt_script.py", tmp_path, "rehearsed-prompts")


def test_a_logged_model(stack: Stack) -> None:
    """Not searched: unlike AWS's, the emulator's local indexes fetch nothing from the table."""
    made = stack.ask("POST", "logged-models", experiment_id="0", name="checkpoint")
    model_id = made["model"]["info"]["model_id"]
    ready = {"model_id": model_id, "status": "LOGGED_MODEL_READY"}
    status, body, _ = stack.call("PATCH", f"/api/2.0/mlflow/logged-models/{model_id}", ready)
    assert status == 200, body
    response = stack.ask("GET", f"logged-models/{model_id}")
    assert response["model"]["info"]["status"] == "LOGGED_MODEL_READY"


TRACE = """
import sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("rehearsed trace")
with mlflow.start_span("outer") as outer:
    with mlflow.start_span("inner") as inner:
        inner.set_outputs("because")
mlflow.flush_trace_async_logging()
trace = mlflow.MlflowClient().get_trace(outer.trace_id)
assert {span.name for span in trace.data.spans} == {"outer", "inner"}, trace
print("ok", mlflow.__version__)
"""


def test_a_trace(stack: Stack, tmp_path: Path) -> None:
    script = tmp_path / "trace.py"
    script.write_text(TRACE)
    client(stack, script, tmp_path)


def test_registry_and_its_webhook(stack: Stack) -> None:
    with receiving() as receiver:
        events = [
            {"entity": "REGISTERED_MODEL", "action": "CREATED"},
            {"entity": "MODEL_VERSION_ALIAS", "action": "CREATED"},
        ]
        stack.ask(
            "POST", "webhooks", name="hook", url=receiver.url("/hook"), events=events, secret="s"
        )
        stack.ask("POST", "registered-models/create", name="rehearsed")
        made = stack.ask("POST", "model-versions/create", name="rehearsed", source="s3://b/model")
        assert made["model_version"]["version"] == "1"
        stack.ask("POST", "registered-models/alias", name="rehearsed", alias="best", version="1")
        response = stack.ask("GET", "registered-models/alias?name=rehearsed&alias=best")
        assert response["model_version"]["version"] == "1"
        assert announced(receiver) == {"registered_model.created", "model_version_alias.created"}
        assert all("x-mlflow-signature" in delivery.headers for delivery in receiver.deliveries)


def announced(receiver: Receiver) -> set[Any]:
    receiver.wait(
        lambda: len({delivery.event for delivery in receiver.deliveries}) >= 2, seconds=60
    )
    return {delivery.event for delivery in receiver.deliveries}


def test_chromium_shows_the_ui(stack: Stack) -> None:
    stack.publish_ui()
    experiment = stack.ask("POST", "experiments/create", name="to be seen")["experiment_id"]
    made = stack.ask("POST", "runs/create", experiment_id=experiment, run_name="shown")
    run_id = made["run"]["info"]["run_id"]
    stack.ask("POST", "runs/log-metric", run_id=run_id, key="loss", value=0.5, timestamp=1)
    program = chromium.executable()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with front.serving(stack) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(program),
            args=chromium.ARGUMENTS,
            env=chromium.environment(program),
        )
        context = browser.new_context(
            viewport={"width": 1500, "height": 950},
            locale="en-US",
            http_credentials={"username": ADMIN[0], "password": ADMIN[1]},
        )
        visitor = Visitor(context.new_page(), url, patience=90)
        visitor.open("/experiments")
        visitor.looks("rehearsal-experiments", "to be seen")
        visitor.open(f"/experiments/{experiment}/runs/{run_id}")
        visitor.looks("rehearsal-run", "shown", "loss")
        browser.close()


def test_the_index_is_right(stack: Stack) -> None:
    verified = stack.admin("verify", "--all")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_zz_the_stack_goes_and_another_adopts_its_data(stack: Stack, tmp_path: Path) -> None:
    """The last test: nothing is deployed to the stack after it."""
    stored = adoption.stored_in(stack.client("cloudformation"), stack.name)
    name = "what stays"
    experiment = stack.ask("POST", "experiments/create", name=name)["experiment_id"]
    stack.delete()
    assert stored["Table"] in stack.client("dynamodb").list_tables()["TableNames"]
    names = [bucket["Name"] for bucket in stack.client("s3").list_buckets()["Buckets"]]
    assert stored["ArtifactBucket"] in names
    assert not [
        function
        for function in stack.client("lambda").list_functions()["Functions"]
        if function["FunctionName"].startswith(NAME)
    ]
    other = Stack(stack.endpoint, tmp_path / "sam.log", f"{NAME}-again")
    other.adopt(stack.build, stored)
    other.deploy(stack.build)
    other.allow_what_the_emulator_asks_for_besides()
    assert other.table == stored["Table"]
    # The administrator, too, is in the table.
    adopted = other.ask("GET", f"experiments/get?experiment_id={experiment}")["experiment"]
    assert adopted["name"] == name
    run = other.ask("POST", "runs/create", experiment_id=experiment)["run"]["info"]
    assert run["experiment_id"] == experiment
    other.delete()
    assert stored["Table"] in stack.client("dynamodb").list_tables()["TableNames"]
