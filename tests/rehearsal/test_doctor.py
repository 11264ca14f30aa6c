"""The checkup of the deployed stack, through the distribution in front of it, is green."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsal import front
from tests.rehearsal.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_the_deployment_is_well(stack: Stack, tmp_path: Path) -> None:
    stack.publish_ui()
    with front.serving(stack) as url:
        steps = stack.doctor(url, tmp_path / "report.json")
    assert [name for name, status in steps.items() if status == "left out"] == ["gateway"]
