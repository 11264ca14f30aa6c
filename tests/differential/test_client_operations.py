"""Some 1,600 operations of MLflow's own client, done with stock and with the product: what came of
each is equal but for SQL in messages and where stock failed with 500."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.parity.operations import MEANT, compare

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_every_operation(stock_url: str, product_url: str, tmp_path: Path) -> None:
    outcomes = compare(stock_url, product_url, tmp_path, sys.executable)
    assert len(outcomes) > 1500
    unexplained = [str(outcome) for outcome in outcomes if outcome.is_unexplained]
    assert not unexplained, f"{len(unexplained)} differences\n" + "\n".join(unexplained)
    different = {each.operation for each in outcomes if not each.is_equal}
    assert MEANT.keys() <= different
