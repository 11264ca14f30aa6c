"""The figures that `make cost` uses: measured by tests, kept in bench/bill/capacity.json."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.bill.usage import CAPACITY

Figures = dict[str, float]


def holds(name: str, measured: dict[str, Figures]) -> None:
    """Writes the figures, or compares them."""
    if os.environ.get("MEASURE"):
        written = json.loads(Path(CAPACITY).read_text()) if Path(CAPACITY).exists() else {}
        written[name] = measured
        Path(CAPACITY).write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
        return
    expected = json.loads(Path(CAPACITY).read_text())[name]
    assert measured.keys() == expected.keys()
    for part, figures in measured.items():
        for figure in figures.keys() - {"cpu_ms"}:
            assert figures[figure] == pytest.approx(expected[part][figure], rel=0.02), (
                name,
                part,
                figure,
            )
