"""The examples of docs/first-steps.md do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documented_examples import FIRST_STEPS, run_first_steps
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_each_example_prints_what_it_says(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path)) as product:
        printed = run_first_steps(product.url, tmp_path)
    assert any(line.startswith("depth 8 0.0588") for line in printed)
    assert "['answer', 'search']" in printed
    assert len(FIRST_STEPS) == 2
