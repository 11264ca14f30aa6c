"""The examples of docs/first-steps.md, run with the real client."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.engines import ROOT
from tests.servers import environment

FIRST_STEPS: Final = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/first-steps.md").read_text(), re.DOTALL
)


def run_first_steps(url: str, folder: Path) -> list[str]:
    """Runs all examples in the folder against the server, and returns the printed lines."""
    printed = []
    for example in FIRST_STEPS:
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=folder,
            env=environment(MLFLOW_TRACKING_URI=url),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout.splitlines()
    return printed
