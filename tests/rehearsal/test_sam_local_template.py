"""`sam local start-api` serves each route by its function, as the SAM CLI's own code finds it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operate import sam_local_template
from tests.arch import project
from tests.engines import ROOT, create_table, free_port, running_dynoxide
from tests.rehearsal import emulator
from tests.rehearsal.stack import SAM, NoInterpreter, credentials, interpreter
from tests.servers import REMEMBERED, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("sam_routes.py")
SERVING = Path(__file__).with_name("sam_api.py")
START_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def sam() -> None:
    try:
        interpreter()
    except NoInterpreter as missing:
        pytest.skip(str(missing))


def served(template: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SAM.with_name("python")), str(SCRIPT), str(template)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def api(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`sam local start-api` over what `sam build` made, as `make start-api` calls it, with
    processes in place of containers."""
    folder = tmp_path_factory.mktemp("start-api")
    assert sam_local_template.main([str(built / "template.yaml")]) == 0
    with running_dynoxide() as engine, (folder / "sam.log").open("wb") as log:
        settings = {
            "TABLE_NAME": create_table(engine.endpoint),
            "AWS_ENDPOINT_URL": engine.endpoint,
            "ARTIFACT_FOLDER": str(folder),
        }
        (folder / "env.json").write_text(json.dumps({"Parameters": settings}))
        python, port = emulator.runtime(interpreter()), free_port()
        command = [
            *(str(SAM.with_name("python")), str(SERVING), str(emulator.emulator()), str(python)),
            *(
                "--template",
                str(built / sam_local_template.NAME),
                "--env-vars",
                str(folder / "env.json"),
            ),
            *("--parameter-overrides", "Authentication=none", "--warm-containers", "LAZY"),
            *("--port", str(port), "--no-watch"),
        ]
        serving = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(PYTHONPATH=str(ROOT), **REMEMBERED, **credentials()),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
            while not answers(url):
                text = (folder / "sam.log").read_text()
                assert serving.poll() is None, text
                assert time.monotonic() < deadline, text
                time.sleep(0.2)
            yield url
        finally:
            serving.send_signal(signal.SIGINT)  # it ends its functions
            with contextlib.suppress(subprocess.TimeoutExpired):
                serving.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(serving.pid, signal.SIGKILL)
            serving.wait()


def answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/health")[0] == 200
    except OSError:
        return False


def ask(url: str, method: str, path: str, fields: dict[str, Any] | None = None) -> tuple[int, str]:
    content = None if fields is None else json.dumps(fields).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + path, content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_start_api_answers(api: str) -> None:
    made = ask(api, "POST", "/api/2.0/mlflow/experiments/create", {"name": "by start-api"})
    assert made[0] == 200, made
    status, body = ask(api, "POST", "/api/2.0/mlflow/experiments/search", {"max_results": 5})
    assert status == 200, body
    assert {experiment["name"] for experiment in json.loads(body)["experiments"]} == {
        "Default",
        "by start-api",
    }
    status, body = ask(api, "GET", "/api/2.0/mlflow/experiments/search?max_results=1")
    assert (status, len(json.loads(body)["experiments"])) == (200, 1)
    run = ask(api, "POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0"})
    assert run[0] == 200, run
    assert ask(api, "GET", "/version") == (200, "3.18.0")
    status, body = ask(api, "GET", "/api/2.0/mlflow/nothing")
    assert (status, json.loads(body)["error_code"]) == (404, "ENDPOINT_NOT_FOUND")


def test_each_route_reaches_its_function(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text((project.ROOT / "template.yaml").read_text())
    assert sam_local_template.main([str(template)]) == 0
    answered = served(tmp_path / sam_local_template.NAME)
    assert answered.returncode == 0, answered.stderr
    results = {
        f"{'ANY' if len(methods) > 1 else methods[0]} {path}" if path != "$default" else path: name
        for path, methods, name in json.loads(answered.stdout.splitlines()[-1])
    }
    packages = project.handlers()
    assert {key: packages[name] for key, name in results.items()} == project.routes()


def test_the_template_that_is_deployed_cannot_be_served(tmp_path: Path) -> None:
    """So the derived one is needed; when this fails, the SAM CLI has learnt it."""
    template = tmp_path / "template.yaml"
    template.write_text((project.ROOT / "template.yaml").read_text())
    assert "TypeError" in served(template).stderr


def test_what_is_derived_differs_in_logins_names_of_functions_and_the_rest_api_only() -> None:
    whole, derived = project.template(), sam_local_template.servable(project.template())
    left_out = whole["Resources"].keys() - derived["Resources"].keys()
    rest_api = {
        name
        for name, resource in whole["Resources"].items()
        if resource["Type"].startswith("AWS::ApiGateway::")
    }
    assert rest_api
    assert left_out == {"Authorizer", *rest_api}
    for name, resource in derived["Resources"].items():
        if not resource["Type"].startswith("AWS::ApiGatewayV2::"):
            assert resource == whole["Resources"][name]
    declared = derived["Globals"]["Function"]["Environment"]["Variables"]
    added = declared.keys() - whole["Globals"]["Function"]["Environment"]["Variables"].keys()
    assert added == set(sam_local_template.SETTABLE)
    assert not any(declared[name] for name in added)
