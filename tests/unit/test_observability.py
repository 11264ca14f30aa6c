"""The log line of a request, and the metrics that it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from mlcore import observability
from mlcore.db.capacity import Measurement
from mlcore.environment import settings
from tests.arch import project


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the last line says beside its message."""
    fields: dict[str, Any] = {}
    monkeypatch.setenv("TABLE_NAME", "mlflow-under-test")
    monkeypatch.setattr(observability, "_metrics_enabled", True)
    monkeypatch.setattr(
        observability._requests, "info", lambda _message, extra: fields.update(extra)
    )
    settings.cache_clear()
    return fields


def log(measurement: Measurement, *, is_unavailable: bool = False) -> None:
    observability.log_request(
        rpc="/x",
        method="GET",
        status=200,
        request_id="r",
        seconds=0.1,
        measurement=measurement,
        is_unavailable=is_unavailable,
    )


def metrics(line: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    """Names by dimension and its value; everything that they name is in the line."""
    results: dict[tuple[str, str], set[str]] = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for metric in directive["Metrics"]:
            assert metric["Name"] in line
            [[dimension]] = directive["Dimensions"]
            results.setdefault((dimension, line[dimension]), set()).add(metric["Name"])
    return results


OF_THE_TABLE = {"Latency", "RoundTrips", "ColdStart"}


def test_a_small_collection_is_not_told(line: dict[str, Any]) -> None:
    measurement = Measurement()
    measurement.largest = (0.5, "EXP#1")
    log(measurement)
    assert metrics(line) == {("table", "mlflow-under-test"): OF_THE_TABLE}
    assert not {"CollectionGB", "collection"} & line.keys()


def test_a_large_collection_is_a_metric_of_its_table(line: dict[str, Any]) -> None:
    measurement = Measurement()
    measurement.largest = (8.5, "EXP#1")
    log(measurement)
    assert metrics(line) == {("table", "mlflow-under-test"): OF_THE_TABLE | {"CollectionGB"}}
    assert (line["CollectionGB"], line["collection"]) == (8.5, "EXP#1")


def test_a_request_that_was_not_served_is_a_metric_of_its_table(line: dict[str, Any]) -> None:
    log(Measurement())
    assert "Unavailable" not in line
    log(Measurement(), is_unavailable=True)
    assert metrics(line) == {("table", "mlflow-under-test"): OF_THE_TABLE | {"Unavailable"}}
    assert line["Unavailable"] == 1


def test_routes_have_metrics_where_they_are_wanted(
    line: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observability, "_route_metrics_enabled", True)
    log(Measurement())
    by_dimension = metrics(line)
    assert by_dimension["table", "mlflow-under-test"] == OF_THE_TABLE
    assert len(by_dimension["rpc", "/x"]) == 8


LINES = """
from mlcore.db.capacity import Measurement
from mlcore.observability import log_request, logger
logger.info("told")
logger.warning("warned")
for number in (1, 2):
    log_request(
        rpc="/x", method="GET", status=200, request_id="r", seconds=0.1, measurement=Measurement()
    )
"""


@pytest.mark.parametrize(
    ("level", "shown"),
    [("INFO", ["told", "warned"]), ("WARN", ["warned"]), ("ERROR", [])],
)
def test_lines_with_metrics_are_written_at_any_level(level: str, shown: list[str]) -> None:
    """In a process as Lambda makes it: its own level as the template sets it, ours beside it."""
    template = project.template()["Globals"]["Function"]
    lowest = template["LoggingConfig"]["ApplicationLogLevel"]
    assert lowest == {"Fn::If": ["HasDebugLog", "DEBUG", "INFO"]}
    assert template["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == {"Ref": "LogLevel"}
    environment = {
        **os.environ,
        "PYTHONPATH": str(project.LAYER.parent),
        "AWS_LAMBDA_LOG_LEVEL": "INFO",
        "POWERTOOLS_LOG_LEVEL": level,
        "POWERTOOLS_METRICS_DISABLED": "false",
    }
    done = subprocess.run(
        [sys.executable, "-c", LINES],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert [each["message"] for each in lines] == [*shown, "request", "request"]
    assert [each["ColdStart"] for each in lines[-2:]] == [1, 0]
    assert metrics(lines[-1])["table", "mlflow-under-test"] == OF_THE_TABLE
    assert not done.stderr
