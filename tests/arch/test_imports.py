"""Modules import only what the contracts in pyproject.toml allow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.arch import project


def test_import_contracts_hold() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [lint_imports, "--no-cache"],
        cwd=project.ROOT,
        env={**os.environ, "PYTHONPATH": str(project.FUNCTIONS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
