"""Windows of budgets are those of MLflow's gateway."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.gateway.budget_windows import window_containing

stock: Any = pytest.importorskip("mlflow.gateway.budget_tracker")
entities: Any = pytest.importorskip("mlflow.entities.gateway_budget_policy")
UNITS = ("MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS")


@given(st.sampled_from(UNITS), st.integers(1, 400), st.datetimes(datetime(1970, 1, 1)))
def test_windows(unit: str, value: int, moment: datetime) -> None:
    now = moment.replace(microsecond=0, tzinfo=UTC)
    if now.year > 9000:
        return
    duration = entities.BudgetDuration(unit, value)
    start = stock._compute_window_start(duration, now)
    end = stock._compute_window_end(duration, start)
    expected = (int(start.timestamp() * 1000), int(end.timestamp() * 1000))
    assert window_containing(unit, value, int(now.timestamp() * 1000)) == expected


def test_the_greatest_number_of_months_ends() -> None:
    start, end = window_containing("MONTHS", 2**31 - 1, 1_800_000_000_000)
    assert start == 0 < end
