"""The wheel serves the product where there is neither the repository nor anything but Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from local.version import VERSION
from tests.e2e import warm_clients
from tests.engines import ROOT, free_port
from tests.servers import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

UV = ROOT / ".venv/bin/uv"
START_SECONDS = 120
FIRST_MINUTE = 60
"""Seconds from an empty home to a server and a first run with a file."""


def interpreters() -> dict[str, str]:
    """Those of the supported versions that this machine has, by version."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    results = {f"3.{sys.version_info.minor}": sys.executable}
    for version in ("3.11", "3.12", "3.13"):
        name = f"python{version}"
        for path in (shutil.which(name), *sorted(versions.glob(f"{version}.*/bin/{name}"))):
            # A shim of pyenv is on PATH for versions that are not selected, too, and fails.
            if (
                path
                and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode
                == 0
            ):
                results.setdefault(version, str(path))
    return results


INTERPRETERS = interpreters()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, str(ROOT / "distribution/build.py"), str(folder)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=sorted(INTERPRETERS))
def program(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("installed")
    interpreter = INTERPRETERS[request.param]
    made = [str(UV), "venv", "--quiet", "--python", interpreter, str(folder / "venv")]
    subprocess.run(made, check=True, capture_output=True)
    python = folder / "venv/bin/python"
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", python, wheel],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    yield folder / "venv/bin/mlflow-serverless"
    shutil.rmtree(folder)


def test_the_wheel_holds_what_a_deployment_is_built_from(wheel: Path) -> None:
    """tests/rehearsal/test_wheel_deployment.py builds from it."""
    lines = subprocess.run(
        ["git", "ls-files", "template.yaml", "samconfig.toml", "functions", "layers"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert {"functions/Makefile", "layers/core/requirements.txt"} <= set(lines)
    product = "mlflow_serverless/product"
    with zipfile.ZipFile(wheel) as archive:
        for name in lines:
            assert archive.read(f"{product}/{name}") == (ROOT / name).read_bytes(), name


FIRST_RUN = """
import mlflow
from pathlib import Path
from tempfile import TemporaryDirectory

with mlflow.start_run() as run, TemporaryDirectory() as folder:
    mlflow.log_params({"depth": 3})
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    path = Path(folder, "ü.txt")
    path.write_text("model")
    mlflow.log_artifact(path)
client = mlflow.MlflowClient()
assert client.get_run(run.info.run_id).data.params == {"depth": "3"}
assert [point.step for point in client.get_metric_history(run.info.run_id, "loss")] == [0, 1, 2]
assert [entry.path for entry in client.list_artifacts(run.info.run_id)] == ["ü.txt"]
assert len(mlflow.search_runs(["0"], "metrics.loss < 0.5")) == 1
"""


def clean(home: Path) -> dict[str, str]:
    """An environment in which nothing leads to the repository."""
    kept = environment(HOME=str(home), PATH="/usr/bin:/bin")
    return {
        name: value
        for name, value in kept.items()
        if not name.startswith(("AWS_", "PYTHON", "VIRTUAL_ENV", "UV_", "XDG_", "TABLE_NAME"))
    }


def test_an_empty_home_serves_the_product(program: Path, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "--port", str(port)],
            cwd=tmp_path,
            env=clean(tmp_path),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while "\nready\n" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        for page in ("/", "/dashboards", "/static-files/dashboards/echarts.js"):
            assert urllib3.request("GET", f"{url}{page}", timeout=60).status == 200
        created = urllib3.request(
            "POST", f"{url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=60
        )
        assert created.status == 200, created.data
        # The other commands find the folder and the server by themselves.
        count = "SELECT count(*) AS runs FROM system.mlflow.runs_latest"
        deadline = time.monotonic() + START_SECONDS
        while (result := ran(program, tmp_path, "sql", count, "--fresh", "--format=json"))[0] == 0:
            if json.loads(result[1])["rows"] == [[1]]:
                break
            assert time.monotonic() < deadline, result
        assert result[0] == 0, result
        assert ran(program, tmp_path, "config", "list")[0] == 0
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert (tmp_path / ".local/share/mlflow-serverless/format.json").is_file()


def test_one_line_leads_to_a_first_run_within_a_minute(wheel: Path, tmp_path: Path) -> None:
    """In an empty home. Processor time is what counts, because other tests run meanwhile."""
    port, log = free_port(), tmp_path / "log"
    url = f"http://127.0.0.1:{port}"
    line = [*(str(UV), "tool", "run", "--python", sys.executable, "--from", str(wheel))]
    line += ["mlflow-serverless", "--port", str(port)]
    # What has been downloaded before, and where from, is the machine's.
    mine = {name: text for name, text in os.environ.items() if name.startswith("UV_")}
    completed = subprocess.run([UV, "cache", "dir"], check=True, capture_output=True, text=True)
    environ = {**clean(tmp_path), **mine, "UV_CACHE_DIR": completed.stdout.strip()}
    before, began = os.times(), time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, cwd=tmp_path, env=environ, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        while "\nready\n" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < began + START_SECONDS, log.read_text()
            time.sleep(0.05)
        subprocess.run(
            [sys.executable, "-c", FIRST_RUN],
            env={**environ, "PATH": os.environ["PATH"], "MLFLOW_TRACKING_URI": url},
            check=True,
            capture_output=True,
        )
        seconds = time.monotonic() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    after = os.times()
    worked = sum(after[2:4]) - sum(before[2:4])  # of the processes that have ended
    assert worked < FIRST_MINUTE, f"{worked} s of a processor in {seconds} s"


def test_the_image_runs_so_and_writes_into_its_volume_only(
    program: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What Containerfile says, with other folders and a free port, and without a home."""
    steps = dict(
        line.split(maxsplit=1)
        for line in (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
        if line and not line.startswith("#")
    )
    port, volume = free_port(), tmp_path / "volume"
    volume.mkdir()
    inside = dict(word.split("=", 1) for word in steps["ENV"].split() if "PATH" not in word)
    environ = {**clean(volume), **{name: str(volume) for name in inside}}
    options = [*json.loads(steps["CMD"]), "--port", str(port), "--host", "127.0.0.1"]
    probe = steps["HEALTHCHECK"].partition("CMD ")[2].replace(":5000", f":{port}")
    python, script = program.with_name("python"), json.loads(probe)[1:]
    installed = program.parent.parent

    def files() -> set[tuple[str, float]]:
        """Those of the installation; pip has compiled them in the image, uv has not here."""
        return {
            (str(path), path.stat().st_mtime)
            for path in installed.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    before = files()
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *options], cwd="/", env=environ, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while subprocess.run(
            [python, *script], env=environ, capture_output=True, check=False
        ).returncode:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        url = f"http://127.0.0.1:{port}"
        environ["MLFLOW_TRACKING_URI"] = url
        # The client of MLflow logs a first run with a file, and finds it.
        first_run = tmp_path_factory.mktemp("client") / "first_run.py"
        first_run.write_text(FIRST_RUN)
        variables = {**environ, "PATH": os.environ["PATH"]}
        client = warm_clients.run(
            sys.executable, "mlflow", [str(first_run)], first_run.parent, variables
        )
        assert client.returncode == 0, client.stderr
        checked = [str(program), "doctor", "--without", "client", "--without", "system-tables"]
        doctor = subprocess.run(checked, env=environ, capture_output=True, text=True, check=False)
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert files() == before
    assert {path.name for path in tmp_path.iterdir()} == {"volume", "log"}


def ran(program: Path, home: Path, *arguments: str) -> tuple[int, str]:
    answer = subprocess.run(
        [program, *arguments],
        cwd=home,
        env=clean(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in answer.stderr, answer.stderr
    return answer.returncode, answer.stdout + answer.stderr


def test_the_command_explains_itself(program: Path, tmp_path: Path) -> None:
    assert ran(program, tmp_path, "--version")[1].startswith(f"mlflow-serverless {VERSION} ")
    code, overview = ran(program, tmp_path, "--help")
    assert (code, "examples:" in overview) == (0, True)
    listed = overview.partition("\ncommands:\n")[2].partition("\n\n")[0]
    names = {
        name.strip() for line in listed.splitlines() for name in re.split(r",|  +", line) if name
    }
    code, output = ran(program, tmp_path, "nothing")
    known = set(re.findall(r"'([a-z-]+)'", output.partition("choose from")[2]))
    assert (code, len(known) > 10) == (2, True)
    # The overview lists every command.
    assert known <= names
    assert ran(program, tmp_path, "gc", "--help")[1].startswith("usage: mlflow-serverless gc")
    assert "--port" in ran(program, tmp_path, "serve", "--help")[1]
    code, output = ran(program, tmp_path, "export", "--to=x.db", "--artifacts=files")
    assert (code, "there is no folder" in output) == (1, True)
    code, output = ran(program, tmp_path, "import", "--from=postgresql://h/db")
    assert (code, "pip install 'mlflow-serverless[export]'" in output) == (1, True)
