"""The log line of a request, and the metrics that it is."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore import observability
from mlcore.db.capacity import Measurement
from mlcore.settings import settings


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the last line says beside its message."""
    said: dict[str, Any] = {}
    monkeypatch.setenv("TABLE_NAME", "mlflow-under-test")
    monkeypatch.setattr(observability, "_metrics_wanted", True)
    monkeypatch.setattr(observability.logger, "info", lambda _message, extra: said.update(extra))
    settings.cache_clear()
    return said


def log(measurement: Measurement) -> None:
    observability.log_request(
        rpc="/x", method="GET", status=200, request_id="r", seconds=0.1, measurement=measurement
    )


def metrics(line: dict[str, Any]) -> dict[str, list[list[str]]]:
    """Dimensions by metric; everything that they name is in the line."""
    found = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for metric in directive["Metrics"]:
            assert metric["Name"] in line
            found[metric["Name"]] = directive["Dimensions"]
        assert all(name in line for names in directive["Dimensions"] for name in names)
    return found


def test_a_small_collection_is_not_told(line: dict[str, Any]) -> None:
    measurement = Measurement()
    measurement.largest = (0.5, "EXP#1")
    log(measurement)
    assert metrics(line)["Latency"] == [["rpc"]]
    assert not {"CollectionGB", "collection"} & line.keys()


def test_a_large_collection_is_a_metric_of_its_table(line: dict[str, Any]) -> None:
    measurement = Measurement()
    measurement.largest = (8.5, "EXP#1")
    log(measurement)
    assert metrics(line)["CollectionGB"] == [["table"]]
    assert (line["CollectionGB"], line["collection"]) == (8.5, "EXP#1")
    assert line["table"] == "mlflow-under-test"
