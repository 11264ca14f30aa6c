"""The wheel, without the repository, builds for a deployment what a clone builds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engines import ROOT
from tests.rehearsal.digests import digests
from tests.rehearsal.layer_builds import python
from tests.rehearsal.stack import build
from tests.servers import environment

__all__ = ["python"]

pytestmark = [pytest.mark.timeout(900)]

SAM = ROOT / ".tools/sam/bin/sam"


def _content(build_folder: Path) -> dict[str, Any]:
    """What was built. The SAM CLI of the tests folds the lines of a template elsewhere."""
    template = yaml.safe_load((build_folder / "template.yaml").read_text(encoding="utf-8"))
    return {**digests(build_folder), "template.yaml": template}


def test_the_wheel_builds_what_a_clone_builds(python: str, tmp_path: Path) -> None:
    maker = [sys.executable, str(ROOT / "distribution/build.py"), str(tmp_path / "dist")]
    subprocess.run(maker, check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    uv = str(ROOT / ".venv/bin/uv")
    venv = tmp_path / "venv"
    for command in (
        [uv, "venv", "--quiet", "--python", python, str(venv)],
        [uv, "pip", "install", "--quiet", "--python", str(venv / "bin/python"), str(wheel)],
    ):
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    folder = tmp_path / "made"
    environ = environment(
        HOME=str(home), PATH=f"{Path(python).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    )
    done = subprocess.run(
        [
            *(str(venv / "bin/mlflow-serverless"), "deploy", "dev", "--build-only"),
            *("--build-folder", str(folder), "--sam", str(SAM)),
        ],
        cwd=home,
        env={name: text for name, text in environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = folder / "arm64/build"
    assert done.stdout.splitlines()[-1] == str(built / "template.yaml")
    mine = build(python, tmp_path / "clone")
    assert _content(built) == _content(mine)
    assert "template.yaml" in digests(mine)
    # Neither the installation nor the folder in which it ran was written to.
    assert not list(home.glob("*.y*ml"))
    assert not list(venv.rglob(".aws-sam"))
