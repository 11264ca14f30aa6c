"""``mlflow_serverless.sql`` of the installed wheel, against a server with logins, in environments
that have nothing else than what is installed there."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.engines import ROOT
from tests.servers import ADMIN, Server, environment, start_product

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

UV = ROOT / ".venv/bin/uv"
LOGIN = {"MLFLOW_TRACKING_USERNAME": ADMIN[0], "MLFLOW_TRACKING_PASSWORD": ADMIN[1]}
FRAMES = ("pandas", "pyarrow", "polars")
STATUS = "SELECT run_id, status FROM system.mlflow.runs_latest WHERE run_id = :id"

RESULT = """
import sys, mlflow_serverless
result = mlflow_serverless.sql(sys.argv[1], parameters={"id": sys.argv[2]}, fresh=True)
expected = {"run_id": [sys.argv[2]], "status": ["RUNNING"]}
assert result.arrow().to_pydict() == expected
assert result.df().to_dict("list") == expected
assert result.pl().to_dict(as_series=False) == expected
hostile = mlflow_serverless.sql(sys.argv[1], parameters={"id": "' OR 1=1 --"})
assert hostile.arrow().num_rows == 0
typed = mlflow_serverless.sql("SELECT max(start_time) AS t, count(1) AS n FROM runs_latest").pl()
assert str(typed.schema["t"]).startswith("Datetime"), typed.schema
saved = mlflow_serverless.sql(saved="by-id", parameters={"id": sys.argv[2]})
assert saved.arrow().to_pydict() == expected
"""
REFUSED = """
import sys, mlflow_serverless
try:
    mlflow_serverless.sql(*sys.argv[1:])
except (mlflow_serverless.SqlError, ValueError) as error:
    print(type(error).__name__, getattr(error, "status", ""), getattr(error, "code", ""), error)
"""
NOTHING_INSTALLED = """
import mlflow_serverless
result = mlflow_serverless.sql("SELECT 1 AS one")
assert result.stream
for form, package in (("arrow", "pyarrow"), ("df", "pandas"), ("pl", "polars")):
    try:
        getattr(result, form)()
    except ImportError as error:
        assert f"pip install {package}" in str(error)
    else:
        raise AssertionError(form)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_product(
        tmp_path_factory.mktemp("server"),
        "--auth",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The interpreters of two environments: with the wheel and what converts results, and with the
    package's own files only."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, str(ROOT / "distribution/build.py"), str(folder)],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    for name, what in (("with", (wheel, *FRAMES)), ("without", ("--no-deps", wheel))):
        python = folder / name / "bin/python"
        for command in (
            ("venv", "--quiet", "--python", sys.executable, folder / name),
            ("pip", "install", "--quiet", "--python", python, *what),
        ):
            subprocess.run([UV, *command], cwd=folder, check=True, capture_output=True)
    return folder / "with/bin/python", folder / "without/bin/python"


def ran(python: Path, script: str, *arguments: str, home: Path, **variables: str) -> str:
    """What a script prints in an environment in which nothing leads to the repository."""
    kept = environment(HOME=str(home), PATH="/usr/bin:/bin", **variables)
    clean = {
        name: value
        for name, value in kept.items()
        if not name.startswith(("AWS_", "PYTHON", "VIRTUAL_ENV", "TABLE_NAME"))
    }
    answer = subprocess.run(
        [python, "-c", script, *arguments],
        cwd=home,
        env=clean,
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def posted(server: Server, path: str, body: Any) -> Any:
    login = b64encode(":".join(ADMIN).encode()).decode()
    request = urllib.request.Request(
        f"{server.url}/api/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Basic {login}"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_results_in_three_forms(server: Server, pythons: tuple[Path, Path], tmp_path: Path) -> None:
    run = posted(server, "2.0/mlflow/runs/create", {"experiment_id": "0", "start_time": 1})
    run_id = run["run"]["info"]["run_id"]
    body = {"name": "by-id", "sql": STATUS, "parameters": [{"name": "id", "type": "text"}]}
    posted(server, "3.0/mlflow-serverless/queries", body)
    where = {"home": tmp_path, "MLFLOW_TRACKING_URI": server.url}
    ran(pythons[0], RESULT, STATUS, run_id, **where, **LOGIN)  # type: ignore[arg-type]
    ran(pythons[1], NOTHING_INSTALLED, **where, **LOGIN)  # type: ignore[arg-type]


def test_credentials_are_those_of_the_client(
    server: Server, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    """In variables, in the address, in MLflow's file; wrong and missing ones are told of."""
    _, python = pythons
    uri, query = {"MLFLOW_TRACKING_URI": server.url}, "SELECT 1 AS one"
    assert ran(python, REFUSED, query, home=tmp_path, **uri).startswith("SqlError 401")
    wrong = {**LOGIN, "MLFLOW_TRACKING_PASSWORD": "wrong"}
    assert ran(python, REFUSED, query, home=tmp_path, **uri, **wrong).startswith("SqlError 401")
    assert ran(python, REFUSED, query, home=tmp_path, **uri, **LOGIN) == ""
    inside = {"MLFLOW_TRACKING_URI": server.url.replace("://", f"://{':'.join(ADMIN)}@")}
    assert ran(python, REFUSED, query, home=tmp_path, **inside) == ""
    folder = tmp_path / ".mlflow"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[mlflow]\n" + "".join(f"{name.lower()} = {value}\n" for name, value in LOGIN.items())
    )
    assert ran(python, REFUSED, query, home=tmp_path, **uri) == ""
    refused = ran(python, REFUSED, "DROP TABLE runs_latest", home=tmp_path, **uri)
    assert refused.startswith("SqlError 400 INVALID_PARAMETER_VALUE Only SELECT")
    for address in ("", "sqlite:///mlflow.db", "databricks"):
        output = ran(python, REFUSED, query, home=tmp_path, MLFLOW_TRACKING_URI=address)
        assert output.startswith("ValueError   name a server")
    assert ran(python, REFUSED, home=tmp_path, **uri).startswith("ValueError   give either")


class _Elsewhere(BaseHTTPRequestHandler):
    """Is busy once, then sends its callers to another address."""

    requests: list[str] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(self.path)
        self.send_response(429 if len(self.requests) == 1 else 307)
        self.send_header("Retry-After", "0")
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_a_busy_server_is_asked_again_and_no_redirect_is_followed(
    pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            uri = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{server.server_port}"}
            output = ran(pythons[1], REFUSED, "SELECT 1", home=tmp_path, **uri, **LOGIN)
        finally:
            server.shutdown()
            thread.join()
    assert output.startswith("SqlError 307")
    assert _Elsewhere.requests == ["/api/3.0/mlflow-serverless/sql"] * 2


def test_the_command_does_not_load_the_client(pythons: tuple[Path, Path], tmp_path: Path) -> None:
    script = "import sys, mlflow_serverless; print('urllib.request' in sys.modules)"
    assert ran(pythons[1], script, home=tmp_path) == "False\n"
