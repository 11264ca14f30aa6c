"""The checkup of a running server: what it sees, what it leaves, and what it never says."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operate.doctor.api import Api, Login
from operate.doctor.checkup_state import PREFIX, Checkup, Options
from operate.doctor.steps import STEPS, experiments
from tests.e2e.breaking_proxy import failing
from tests.engines import ROOT, free_port
from tests.servers import ADMIN, Server, environment, start_product, stopped

pytestmark = [pytest.mark.e2e]

READER = ("reader", "a-readers-password")
OF_AWS = {"alarms", "backups", "failure-queues", "quotas", "table", "throttles", "versions"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    login = {"MLFLOW_AUTH_ADMIN_USERNAME": ADMIN[0], "MLFLOW_AUTH_ADMIN_PASSWORD": ADMIN[1]}
    folder = tmp_path_factory.mktemp("examined")
    with stopped(start_product(folder, "--auth", "--workspaces", port=None, **login)) as started:
        yield started


def command(url: str, user: tuple[str, str], *arguments: str) -> subprocess.Popen[str]:
    name, password = user
    return subprocess.Popen(
        [sys.executable, "-m", "local.admin", "doctor", "--url", url, *arguments],
        cwd=ROOT,
        env=environment(MLFLOW_TRACKING_USERNAME=name, MLFLOW_TRACKING_PASSWORD=password),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def examined(
    url: str, user: tuple[str, str], report: Path, *arguments: str
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The exit code, the status and the detail of each step by its name; nothing of the login is
    in what was printed or written."""
    process = command(url, user, "--json", str(report), *arguments)
    printed, _ = process.communicate(timeout=200)
    assert report.exists(), printed
    written = report.read_text()
    for secret in (user[1], base64.b64encode(":".join(user).encode()).decode()):
        assert secret not in printed
        assert secret not in written
    document = json.loads(written)
    assert document["ok"] is (process.returncode == 0)
    steps = {step["step"]: step for step in document["steps"]}
    assert all(f"{name} " in printed for name in steps)
    status = {name: step["status"] for name, step in steps.items()}
    return process.returncode, status, {name: step["detail"] for name, step in steps.items()}


def ask(
    server: Server, method: str, path: str, user: tuple[str, str] = ADMIN, **fields: Any
) -> Any:
    login = base64.b64encode(":".join(user).encode()).decode()
    request = urllib.request.Request(
        f"{server.url}/api/2.0/mlflow/{path}",
        json.dumps(fields).encode() if fields else None,
        {"Authorization": f"Basic {login}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def left(server: Server) -> list[str]:
    """Names of what checkups made and did not remove."""
    resources = ask(server, "POST", "experiments/search", max_results=1000)["experiments"]
    resources += ask(server, "GET", "registered-models/search").get("registered_models", [])
    resources += ask(server, "GET", "webhooks").get("webhooks", [])
    return [resource["name"] for resource in resources if resource["name"].startswith(PREFIX)]


def test_a_healthy_server(server: Server, tmp_path: Path) -> None:
    code, status, detail = examined(server.url, ADMIN, tmp_path / "report.json")
    assert code == 0, detail
    assert status.keys() == {*(step.name for step in STEPS), "removal"}
    left_out = {name for name, state in status.items() if state == "left out"}
    assert left_out == {*OF_AWS, "gateway"}
    assert "12 MB" in detail["client"]
    assert left(server) == []


def test_a_wrong_password(server: Server, tmp_path: Path) -> None:
    user = (ADMIN[0], "not-the-password-at-all")
    code, status, detail = examined(server.url, user, tmp_path / "report.json")
    assert code == 1
    assert status == {"server": "ok", "login": "WRONG", "removal": "ok"}
    assert "MLFLOW_TRACKING_PASSWORD" in detail["login"]


def test_nobody_answers(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    code, status, detail = examined(url, ADMIN, tmp_path / "report.json")
    assert code == 1
    assert status == {"server": "WRONG", "removal": "ok"}
    assert "no answer" in detail["server"]


def test_a_user_who_may_only_read(server: Server, tmp_path: Path) -> None:
    name, password = READER
    ask(server, "POST", "users/create", username=name, password=password)
    code, status, detail = examined(server.url, READER, tmp_path / "report.json")
    assert code == 1
    assert status["login"] == "ok"
    assert status["experiment"] == "WRONG"
    assert "403" in detail["experiment"]
    assert "run" not in status
    assert left(server) == []


def test_what_was_made_goes_when_a_step_fails(server: Server, tmp_path: Path) -> None:
    with failing(server.url, ["/registered-models/alias", "/traces/get"]) as url:
        code, status, detail = examined(
            url, ADMIN, tmp_path / "report.json", "--without", "client", "--without", "sql"
        )
    assert code == 1
    assert {name for name, state in status.items() if state == "WRONG"} == {"trace", "registry"}
    assert {"kubeflow", "webhook"} <= {
        name for name, state in status.items() if state == "left out"
    }
    assert "broken on purpose" in detail["registry"]
    assert status["run"] == status["search"] == status["removal"] == "ok"
    assert left(server) == []


def test_what_cannot_be_removed_is_named(server: Server, tmp_path: Path) -> None:
    with failing(server.url, ["/experiments/delete"]) as url:
        code, status, detail = examined(
            url, ADMIN, tmp_path / "report.json", "--without", "client", "--without", "sql"
        )
    assert code == 1
    assert status["removal"] == "WRONG"
    assert "STILL THERE: the experiment" in detail["removal"]
    [name] = left(server)
    response = ask(server, "GET", f"experiments/get-by-name?experiment_name={name}")
    ask(server, "POST", "experiments/delete", experiment_id=response["experiment"]["experiment_id"])


def test_a_checkup_that_is_stopped_cleans_up(server: Server) -> None:
    process = command(server.url, ADMIN)
    deadline = time.monotonic() + 100
    while not left(server):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # perhaps in the middle of a request that creates
    printed, _ = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "interrupted" in printed
    assert left(server) == []


def test_what_a_killed_checkup_left_is_removed_later(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert left(server) == []
    name = f"{PREFIX}0123"
    ask(server, "POST", "experiments/create", name=name)
    ask(server, "POST", "registered-models/create", name=name)
    api = Api(server.url, Login(*ADMIN))
    checkup = Checkup(api, None, Options(None, None, None, None, 60))
    assert experiments.remove_leftovers(checkup) == "none"  # it may be of a checkup that runs
    monkeypatch.setattr(experiments, "LEFTOVER_SECONDS", -60)
    assert experiments.remove_leftovers(checkup).startswith("2 things")
    assert left(server) == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://ann:secret@127.0.0.1:1", "mlflow"])
def test_addresses_that_are_refused(url: str) -> None:
    process = command(url, ("", ""))
    printed, _ = process.communicate(timeout=100)
    assert process.returncode == 1
    assert printed.startswith("local.admin: --url")
    assert "secret" not in printed
