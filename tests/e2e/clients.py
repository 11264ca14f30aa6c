"""Virtual environments with old MLflow clients, made once in .tools/clients; owns the pins."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.e2e import warm_clients
from tests.engines import ROOT
from tests.servers import REMEMBERED, environment

_PLUGIN = "requests-auth-aws-sigv4==0.7"
"""By which a client signs its requests if it is told to."""
# Versions without the plugin stay: installations without it must work.
# What these clients need besides: 2.9 imports pkg_resources, which newer setuptools lost;
# OpenTelemetry 1.34 breaks the tracing modules that 2.22 and 3.1 import.
PINS = {
    "2.9.2": ("setuptools==80.9.0",),
    "2.22.1": ("opentelemetry-api==1.33.1", "opentelemetry-sdk==1.33.1", _PLUGIN),
    "3.1.4": ("opentelemetry-api==1.33.1", "opentelemetry-sdk==1.33.1"),
    "3.6.0": (),
    "3.17.2": (_PLUGIN,),
}
FIRST = "1.30.1"
CURRENT = "3.18.0"
"""The version of mlflow that the tests themselves import."""
PARTS = "3.17.2"
"""The newest version of mlflow-skinny and mlflow-tracing that was published."""
TRACING = f"mlflow-tracing {PARTS}"
OPENTELEMETRY = "opentelemetry 1.45.2"
OLD_SERVER = "server 2.9.2"
SIGNING = PARTS
SIGNING_OLD = "2.22.1"
KUBEFLOW = "model-registry 0.3.18"
KUBEFLOW_OLD = "model-registry 0.3.14"
DUCKDB = "duckdb 1.5.5"
PARQUET = "pyarrow 14.0.2"
MODELS = "openai 3.54.0 anthropic 2.12.0"
SDKS = "sdks of 2026-11"
"""What calls models through the gateway: the SDKs of their providers, and those that wrap them."""
MCP = "mcp 2.3.0"
AGENTS = "openai 2.47.0 langchain-openai 1.7.4 opentelemetry 1.45.2"
"""What calls models, traced by MLflow's autologging or by OpenTelemetry."""
OTHERS = {
    # The oldest of all, and the newest without roles: for what they alone call.
    FIRST: (f"mlflow-skinny=={FIRST}", "setuptools==80.9.0"),
    "3.7.0": ("mlflow-skinny==3.7.0",),
    TRACING: (f"mlflow-tracing=={PARTS}",),
    OPENTELEMETRY: ("opentelemetry-exporter-otlp-proto-http==1.45.2",),
    KUBEFLOW: ("model-registry==0.3.18",),
    MODELS: ("openai==3.54.0", "anthropic==2.12.0"),
    # The newest OpenAI that MLflow's autologging knows.
    AGENTS: (
        *(f"mlflow-tracing=={PARTS}", "openai==2.47.0"),
        *("langchain-core==1.8.3", "langchain-openai==1.7.4"),
        "opentelemetry-exporter-otlp-proto-http==1.45.2",
    ),
    SDKS: (
        *("openai==3.57.0", "anthropic==2.14.0", "google-genai==3.6.1", "litellm==1.110.2"),
        *("langchain-core==1.8.3", "langchain-openai==1.7.4", "langchain-anthropic==1.7.10"),
        *("langchain-google-genai==4.4.3", "pydantic-ai-slim[openai,anthropic,google]==2.66.0"),
    ),
    KUBEFLOW_OLD: ("model-registry==0.3.14",),
    MCP: ("mcp==2.3.0",),
    # The newest whose extensions are packages.
    DUCKDB: ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "duckdb-extension-httpfs==1.5.5"),
    # Readers that know no string views.
    PARQUET: ("pyarrow==14.0.2", "numpy==1.26.4", "daft==0.7.14", "typing-extensions==4.15.0"),
    # SQLAlchemy 2.1 lost a class that old servers import.
    OLD_SERVER: (
        *("mlflow-skinny==2.9.2", *PINS["2.9.2"]),
        *("sqlalchemy==2.0.36", "alembic<2", "Flask<4", "gunicorn", "querystring-parser<2"),
    ),
}
"""Clients of few tests, what writes traces without MLflow's whole client, a reader of tables, and a
server of long ago, by the name of its environment."""
NOT_WARM = (OPENTELEMETRY, MODELS, MCP, AGENTS, SDKS)
"""Clients that few scripts use: each of these scripts starts an interpreter."""
SCRIPTS = ROOT / "tests" / "e2e"
CLIENT_SCRIPT = SCRIPTS / "client_script.py"
FILES_SCRIPT = SCRIPTS / "files_script.py"
LARGE_FILE_SCRIPT = SCRIPTS / "large_file_script.py"
KUBEFLOW_SCRIPT = SCRIPTS / "kubeflow_script.py"
KUBEFLOW_V1 = "/api/model_registry/v1"
IN_PARTS = {
    # What docs/clients.md tells users of a deployment to set.
    "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE": "4000000",
    "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "true",
    "MLFLOW_MULTIPART_DOWNLOAD_MINIMUM_FILE_SIZE": "8000000",
    "MLFLOW_MULTIPART_DOWNLOAD_CHUNK_SIZE": "6000000",
}

FOLDER = ROOT / ".tools" / "clients"


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Workers of one test run make an environment once; the others wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def python(name: str) -> Path:
    """The interpreter that imports mlflow-skinny of this version, or one of the others."""
    folder = FOLDER / name.replace(" ", "-")
    interpreter = folder / "bin" / "python"
    wanted = "\n".join(OTHERS.get(name) or (f"mlflow-skinny=={name}", *PINS[name]))
    done = folder / "installed.txt"
    with _alone(folder.with_name(f"{folder.name}.lock")):
        if done.exists() and done.read_text() == wanted:
            return interpreter
        uv = shutil.which(
            "uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )
        assert uv, "uv is installed by `make setup`"
        for command in (
            ["venv", "--quiet", "--clear", "--python", _interpreter(), str(folder)],
            ["pip", "install", "--quiet", "--python", str(interpreter), *wanted.splitlines()],
        ):
            # The project's own overrides would leave mlflow-skinny out.
            subprocess.run([uv, "--no-config", *command], check=True, cwd=FOLDER, env=environment())
        done.write_text(wanted)
    return interpreter


def _interpreter() -> str:
    """Python 3.11, the newest that all of these clients support, else the tests' own."""
    return (
        "3.11" if sys.version_info[:2] != (3, 11) and shutil.which("python3.11") else sys.executable
    )


def run_script(script: Path, name: str, folder: Path, *arguments: str) -> None:
    """Runs a script with a client; it must end with its ``ok``.

    Args:
        name: the version of mlflow-skinny, or one of the others.
        folder: where it runs.
    """
    done = ran(script, name, folder, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok {name.rsplit(maxsplit=1)[-1]}" in done.stdout, done.stdout


def ran(
    script: Path, name: str, folder: Path, *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """As :func:`run_script`, whatever comes of it, with more variables of the environment."""
    interpreter = sys.executable if name == CURRENT else str(python(name))
    command = [str(script), *arguments]
    variables = environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="1", **REMEMBERED, **more)
    module = "model_registry" if name in (KUBEFLOW, KUBEFLOW_OLD) else "mlflow"
    if name not in NOT_WARM:
        return warm_clients.run(interpreter, module, command, folder, variables)
    return subprocess.run(
        [interpreter, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=variables,
    )
