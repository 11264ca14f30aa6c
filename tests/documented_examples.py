"""The examples of docs/first-steps.md, run with the real client."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from tests.e2e import warm_clients
from tests.engines import ROOT
from tests.servers import environment

FIRST_STEPS: Final = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/first-steps.md").read_text(), re.DOTALL
)


def run_first_steps(url: str, folder: Path) -> list[str]:
    """Runs all examples in the folder against the server, and returns the printed lines."""
    printed = []
    variables = environment(MLFLOW_TRACKING_URI=url)
    for number, example in enumerate(FIRST_STEPS):
        program = folder / f"example-{number}.py"
        program.write_text(example)
        done = warm_clients.run(sys.executable, "mlflow", [str(program)], folder, variables)
        assert done.returncode == 0, done.stderr
        printed += done.stdout.splitlines()
    return printed
