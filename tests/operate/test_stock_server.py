"""MLflow's own server in one process, without MLflow: which command becomes what."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

import pytest

from operate import stock_server

Started = list[tuple[str, Any]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What was started here, and what as a child."""
    calls: Started = []

    def run_module(name: str, **options: Any) -> None:
        calls.append((name, sys.argv))

    monkeypatch.setattr("runpy.run_module", run_module)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("_MLFLOW_SERVER_SERVE_ARTIFACTS", "")
    monkeypatch.setenv("OF_THE_CHILD", "")
    return calls


def installed(monkeypatch: pytest.MonkeyPatch, calls: Started, *command: str) -> None:
    """An MLflow whose command starts its server by this command."""
    mlflow, server, cli = (ModuleType(f"mlflow{part}") for part in ("", ".server", ".cli"))

    class Command:
        def main(self, arguments: list[str]) -> None:
            assert arguments == ["server", "--port", "1"]
            assert os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] == "true"
            options = {"extra_env": {"OF_THE_CHILD": "1"}, "synchronous": False}
            vars(server)["_exec_cmd"](["python", *command], **options)

    vars(server)["_exec_cmd"] = lambda given, **options: calls.append(("child", given))
    vars(cli)["cli"] = Command()
    for module in (mlflow, server, cli):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_uvicorn_runs_here(monkeypatch: pytest.MonkeyPatch, started: Started) -> None:
    installed(monkeypatch, started, "-m", "uvicorn", "--port", "1", "app")
    stock_server.run(["--port", "1"])
    assert started == [("uvicorn", ["uvicorn", "--port", "1", "app"])]
    assert os.environ["OF_THE_CHILD"] == "1"


def test_another_server_is_a_child_as_always(
    monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    installed(monkeypatch, started, "-m", "gunicorn", "app")
    stock_server.run(["--port", "1"])
    assert started == [("child", ["python", "-m", "gunicorn", "app"])]
    assert os.environ["OF_THE_CHILD"] == ""
