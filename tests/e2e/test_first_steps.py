"""The examples of docs/first-steps.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import ROOT
from tests.servers import environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/first-steps.md").read_text(), re.S)


def test_each_example_prints_what_it_says(tmp_path: Path) -> None:
    said = []
    with stopped(start_product(tmp_path)) as product:
        for example in EXAMPLES:
            done = subprocess.run(
                [sys.executable, "-c", example],
                cwd=tmp_path,
                env=environment(MLFLOW_TRACKING_URI=product.url),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            said += done.stdout.splitlines()
    assert any(line.startswith("depth 8 0.0588") for line in said)
    assert "['answer', 'search']" in said
    assert len(EXAMPLES) == 2
