"""From MLflow's own server into the product and out again: MLflow's client reads the same from all
three, though both ways were killed at each stage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e import store_reading
from tests.e2e.import_administrator import admin, killed_at
from tests.servers import start_product, start_stock, stopped

RUNS = int(os.environ.get("ROUND_TRIP_RUNS", "12"))
TRACES = int(os.environ.get("ROUND_TRIP_TRACES", "12"))
POINTS = int(os.environ.get("ROUND_TRIP_POINTS", "40"))

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600 + 2 * RUNS)]

TABLE = "mlflow-serverless"
INWARD = ("experiment ", "run ", "logged model ", "trace ", "files ", "registered model ")
"""What the journal names when an import has come so far."""
OUTWARD = ("logged model ", "files ", "registered model ")
"""As :data:`INWARD`, for an export; test_export.py kills it at other places."""


def unequal(expected: dict[str, object], actual: dict[str, object]) -> list[object]:
    keys = sorted({*expected, *actual})
    return [
        (key, expected.get(key), actual.get(key))
        for key in keys
        if expected.get(key) != actual.get(key)
    ]


def test_what_went_in_comes_out(tmp_path: Path) -> None:
    old, new, data = tmp_path / "old", tmp_path / "new", tmp_path / "data"
    for folder in (old, new):
        folder.mkdir()
    inward, outward = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    kills = 0
    with stopped(start_stock(old)) as stock:
        store_reading.fill(stock.url, runs=RUNS, models=2, traces=TRACES, points=POINTS)
        arguments = ("import", f"--from={stock.url}", f"--data={data}", f"--journal={inward}")
        kills += sum(killed_at(stage, inward, *arguments) for stage in INWARD)
        assert "0 differences, 0 failures" in admin(*arguments)
        before = store_reading.told(stock.url)
    kinds = {key.partition(" ")[0] for key in before}
    assert kinds >= {"experiment", "run", "history", "files", "logged", "registered", "version"}
    assert kinds >= {"prompt", "trace", "dataset", "scorer"}
    assert sum(key.startswith("run ") for key in before) == RUNS + 1
    outgoing = (
        *("export", f"--to={new / 'mlflow.db'}", f"--artifacts={new / 'artifacts'}"),
        *(f"--data={data}", f"--journal={outward}"),
    )
    kills += sum(killed_at(stage, outward, *outgoing) for stage in OUTWARD)
    assert "0 differences, 0 failures" in admin(*outgoing)
    assert kills > len(INWARD)
    with stopped(start_product(tmp_path, "--data", str(data), TABLE_NAME=TABLE)) as product:
        assert unequal(before, store_reading.told(product.url)) == []
    with stopped(start_stock(new)) as stock:
        assert unequal(before, store_reading.told(stock.url)) == []
