"""The checkup of the deployed stack, through the distribution in front of it, is green."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import ROOT
from tests.rehearsal import front
from tests.rehearsal.stack import NAME, Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_the_deployment_is_well(stack: Stack, tmp_path: Path) -> None:
    published = subprocess.run(
        [sys.executable, "-m", "operate.ui_bucket", NAME],
        cwd=ROOT,
        env=stack.environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert published.returncode == 0, published.stderr
    with front.serving(stack) as url:
        steps = stack.doctor(url, tmp_path / "report.json")
    assert [name for name, status in steps.items() if status == "left out"] == ["gateway"]
