"""What the runner says when it is ready, and to whom it answers."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from local.version import VERSION
from mlcore.mlflow_version import MLFLOW_VERSION

from .conftest import ROOT, eventually

EVERYWHERE = "--host=0.0.0.0"


def test_the_banner_says_what_a_newcomer_needs(product: Any) -> None:
    runner = product("--auth")
    url = f"http://127.0.0.1:{runner.port}"
    for line in (
        f"  version  {VERSION}, the API and web UI of MLflow {MLFLOW_VERSION}",
        f"  pages    {url}/ and {url}/dashboards; first commands: {url}/dashboards/start",
        f"  client   export MLFLOW_TRACKING_URI={url}",
        "  login    admin; export MLFLOW_TRACKING_USERNAME=admin MLFLOW_TRACKING_PASSWORD=…",
        "  log      the lines below",
        "  stop     Ctrl-C",
    ):
        assert f"\n{line}\n" in runner.output
    assert "WARNING: --host" not in runner.output
    assert "  proxy " not in runner.output
    assert runner.end() == 0


def test_an_open_runner_says_so_and_answers_to_its_own_names(product: Any) -> None:
    runner = product(EVERYWHERE)
    assert "WARNING: --host 0.0.0.0 is open to other machines, and nobody logs in" in runner.output
    assert (
        "\n  hosts    localhost, private addresses and the name of this machine\n" in runner.output
    )
    path = "/api/2.0/mlflow/experiments/search"
    foreign = runner.request("GET", path, Host="evil.example.com:5000")
    assert (foreign[0], b"DNS rebinding" in foreign[1]) == (403, True)
    assert runner.request("GET", "/health", Host="evil.example.com")[0] == 200
    assert runner.request("GET", f"{path}?max_results=1", Host="10.0.0.1:5000")[0] == 200


def test_a_proxy_is_left_out(product: Any) -> None:
    """Nothing listens at the proxy's address; secrets are sealed through KMS, which the runner
    stands in for over HTTP."""
    runner = product(HTTP_PROXY="http://127.0.0.1:9", NO_PROXY="", no_proxy="")
    assert "  proxy    clients need export NO_PROXY=127.0.0.1,localhost\n" in runner.output
    made = {"secret_name": "s", "secret_value": {"api_key": "k"}, "provider": "openai"}
    status, body, _ = runner.request(
        "POST",
        "/api/3.0/mlflow/gateway/secrets/create",
        json.dumps(made),
        Content_Type="application/json",
    )
    assert status == 200, (body, runner.output)


def test_the_terminal_names_the_error(product: Any) -> None:
    runner = product("--no-indexer")
    get = "/api/2.0/mlflow/runs/get"
    assert runner.request("GET", f"{get}?run_id=absent")[0] == 404
    assert runner.request("GET", get)[0] == 400
    assert runner.request("GET", "/nothing")[0] == 404
    for line in (
        rf"GET {get} 404 RESOURCE_DOES_NOT_EXIST \d",
        rf"GET {get} 400 INVALID_PARAMETER_VALUE \d",
        r"GET /nothing 404 ENDPOINT_NOT_FOUND \d",
        r"GET /health 200 \d",
    ):
        eventually(lambda line=line: re.search(line, runner.output))  # written after the answer


def test_a_locale_without_utf8_changes_nothing(product: Any) -> None:
    """Python uses UTF-8 where the locale is POSIX, unless it is told not to; other locales have
    other encodings."""
    runner = product(LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    path = f"/api/2.0/mlflow-artifacts/artifacts/0/a/{quote('ü 日本.txt')}"
    assert runner.request("PUT", path, "text")[0] == 200
    assert runner.request("GET", path)[:2] == (200, b"text")
    (file,) = Path(runner.value("data")).rglob("ü 日本.txt")
    assert file.read_text() == "text"
    assert runner.end() == 0


def test_the_version() -> None:
    stdout = subprocess.run(
        [sys.executable, "-m", "local", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert stdout == f"mlflow-serverless {VERSION} (MLflow {MLFLOW_VERSION})\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
