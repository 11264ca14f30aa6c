"""The correlation of two filters, computed here and by MLflow's own function, from the same
counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.search import correlation

mlflows = pytest.importorskip("mlflow.store.analytics.trace_correlation")

_small = st.integers(min_value=0, max_value=40)


@given(st.tuples(_small, _small, _small, _small))
def test_the_same_number_to_the_last_bit(cells: tuple[int, int, int, int]) -> None:
    both, only_first, only_second, _ = cells
    counts = both, both + only_first, both + only_second, sum(cells)
    expected = mlflows.calculate_npmi_from_counts(*counts)
    ours = correlation.information(*counts)
    for name in ("npmi", "npmi_smoothed"):
        value = getattr(expected, name)
        assert ours.get(name) == (None if math.isnan(value) else value)
