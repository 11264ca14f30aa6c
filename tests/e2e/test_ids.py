"""Ids of experiments are what unmodified clients take them for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.clients import CURRENT, run_script
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("ids_script.py")


def test_ids_of_experiments(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path)) as product:
        run_script(SCRIPT, CURRENT, tmp_path, product.url, "ids")
