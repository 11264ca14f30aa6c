"""Some 1,600 operations of MLflow's own client, done with stock and with the product: what came of
each is equal but for SQL in messages and where stock failed with 500."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.differential.recorded_outcomes import outcome
from tests.parity.operations import MEANT, compared, run
from tests.servers import start_product, start_stock, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NAME = "ops"
"""What names begin with: each server is new."""


def test_every_operation(tmp_path: Path) -> None:
    def of_stock() -> list[list[str]]:
        (tmp_path / "stock").mkdir()
        with stopped(start_stock(tmp_path / "stock")) as stock:
            return run(stock.url, NAME, tmp_path / "stock.json", sys.executable)

    with stopped(start_product(tmp_path)) as product:
        ours = run(product.url, NAME, tmp_path / "ours.json", sys.executable)
    outcomes = compared(outcome(Path(__file__), of_stock), ours)
    assert len(outcomes) > 1500
    unexplained = [str(outcome) for outcome in outcomes if outcome.is_unexplained]
    assert not unexplained, f"{len(unexplained)} differences\n" + "\n".join(unexplained)
    different = {each.operation for each in outcomes if not each.is_equal}
    assert MEANT.keys() <= different
