"""Checks the server with MLflow's own client, in a separate process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from operate.doctor.checkup_state import Checkup
from operate.doctor.outcome import LeftOut, Wrong

_SCRIPT: Final = Path(__file__).resolve().parent.parent / "client_script.py"
IN_PARTS: Final = {
    "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE": "4000000",
    "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "true",
}
"""The variables that docs/clients.md tells users of a deployment to set."""
_KEPT: Final = ("MLFLOW_TRACKING_",)
"""Beginnings of the MLflow variables that are passed to the client, such as those of the login."""
_SECONDS: Final = 300
_TAIL: Final = 600


def use(checkup: Checkup) -> str:
    """Uploads and downloads a file of 12 MB and logs a metric with MLflow's client. Returns a text
    that says whether large files need client settings. Raises Wrong if the client fails, LeftOut if
    an earlier step failed or no interpreter with mlflow can be used."""
    with tempfile.TemporaryDirectory() as folder:
        python = _interpreter(checkup, Path(folder))
        with checkup.api.interruption.immediate():
            plain = _run(checkup, python, folder, {})
        if plain.returncode == 0:
            return f"{_result_line(plain)}; nothing had to be set for large files"
        with checkup.api.interruption.immediate():
            parts = _run(checkup, python, folder, IN_PARTS)
    if parts.returncode:
        raise Wrong(f"{_last(parts)} (with and without {', '.join(IN_PARTS)})")
    return f"{_result_line(parts)}; large files need {', '.join(IN_PARTS)}"


def _run(
    checkup: Checkup, python: str, folder: str, settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MLFLOW_") or name.startswith(_KEPT)
    }
    try:
        return subprocess.run(
            [python, str(_SCRIPT), checkup.api.url, checkup.fact("experiment")],
            env={
                **kept,
                "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
                **settings,
            },
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"the client did not end within {_SECONDS} s") from None


def _result_line(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the result of the script, which is the last line of its output, after lines of
    MLflow's client."""
    return done.stdout.strip().rpartition("\n")[2]


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or done.stdout.strip())[-_TAIL:]


def _interpreter(checkup: Checkup, folder: Path) -> str:
    """Returns the path of a Python interpreter that has mlflow: the one that the options name, this
    one, or one in an environment that is installed into ``folder``. Raises LeftOut if there is
    none."""
    if checkup.options.client:
        return checkup.options.client
    if find_spec("mlflow") is not None:
        return sys.executable
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        raise LeftOut("name an interpreter that has mlflow by --client")
    version = checkup.fact("version")
    for command in (
        ["venv", "--quiet", str(folder / "client")],
        [
            *("pip", "install", "--quiet", "--python", str(folder / "client")),
            f"mlflow-skinny=={version}",
        ],
    ):
        with checkup.api.interruption.immediate():
            done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LeftOut(f"mlflow-skinny could not be installed ({_last(done)}): give --client")
    return str(folder / "client" / "bin" / "python")
