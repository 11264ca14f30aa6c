"""Builds of the template\x27s layers and functions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engines import ROOT
from tests.rehearsal.stack import NoInterpreter, interpreter
from tests.servers import environment


@pytest.fixture(scope="module")
def python() -> str:
    try:
        return interpreter()
    except NoInterpreter as missing:
        pytest.skip(str(missing))


def build(target: str, source: str, python: str, folder: Path, architecture: str) -> Path:
    """As `sam build` does: the target of the Makefile in a copy of the folder."""
    copy, made = folder / "source", folder / "made"
    shutil.copytree(ROOT / source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    made.mkdir()
    subprocess.run(
        [
            *("make", "--silent", "-C", str(copy), f"build-{target}"),
            *(f"PYTHON={python}", f"ARTIFACTS_DIR={made}", f"ARCHITECTURE={architecture}"),
        ],
        check=True,
        env=environment(),
        timeout=240,
    )
    return made
