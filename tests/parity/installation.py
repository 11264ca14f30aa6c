"""Finds or makes the interpreter that imports a version of MLflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.engines import ROOT
from tests.servers import REMEMBERED, environment

CURRENT: Final = version("mlflow")
"""The version of the lock, which the tests import."""
FOLDER: Final = ROOT / ".tools" / "parity"
_PARTS: Final = "3.17.2"
"""For releases whose parts (mlflow-skinny, mlflow-tracing) were not published."""
_SURFACES: Final = Path(__file__).with_name("surfaces.py")


def interpreter(wanted: str) -> tuple[str, str]:
    """Returns (interpreter, version) of an MLflow.

    Args:
        wanted: a version, ``latest``, or the path of a wheel.
    """
    if wanted == CURRENT:
        return sys.executable, CURRENT
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert uv, "uv is installed by `make setup`"
    folder = FOLDER / re.sub(r"\W", "-", Path(wanted).name)
    python = folder / "bin" / "python"
    if wanted == "latest" or not python.exists():
        named = {"latest": "mlflow"}.get(wanted) or (
            wanted if wanted.endswith(".whl") else f"mlflow=={wanted}"
        )
        base = [uv, "--no-config"]
        subprocess.run([*base, "venv", "--quiet", "--clear", str(folder)], check=True)
        install = [*base, "pip", "install", "--quiet", "--python", str(python)]
        # Passwords of 3.1 and later need what the extra `auth` names.
        packages = [named, "Flask-WTF<2"]
        if subprocess.run([*install, *packages], check=False, capture_output=True).returncode:
            overrides = FOLDER / "overrides.txt"
            overrides.write_text(f"mlflow-skinny=={_PARTS}\nmlflow-tracing=={_PARTS}\n")
            subprocess.run([*install, "--override", str(overrides), *packages], check=True)
    completed = subprocess.run(
        [str(python), "-c", "from importlib.metadata import version; print(version('mlflow'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    return str(python), completed.stdout.strip()


def numbers(of_version: str) -> tuple[int, ...]:
    """Returns a version as numbers, for comparisons."""
    return tuple(int(part) for part in of_version.split(".")[:3] if part.isdigit())


def surfaces(python: str) -> dict[str, dict[str, str]]:
    """Returns what the MLflow of an interpreter offers, by surface and name."""
    printed = subprocess.run(
        [python, str(_SURFACES)],
        check=True,
        capture_output=True,
        text=True,
        cwd=FOLDER.parent,
        env=environment(**REMEMBERED),
    )
    names_by_surface: dict[str, dict[str, str]] = json.loads(printed.stdout)
    return names_by_surface
