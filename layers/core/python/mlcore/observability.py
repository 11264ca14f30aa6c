"""Writes one structured log line for each request, which also holds its CloudWatch metrics (EMF).

A line contains identifiers, counts and times; never headers, bodies, contents or secrets.
CloudWatch charges 30 cents a month for each metric and combination of dimensions. So there are few
metrics, by table; metrics by route are optional (``ROUTE_METRICS``).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Final

from aws_lambda_powertools.logging import Logger

from mlcore.db.capacity import Measurement
from mlcore.environment import settings

NAMESPACE: Final = "MLflowServerless"

logger: Final = Logger(service=os.environ.get("POWERTOOLS_SERVICE_NAME", "mlflow"))

_level = os.environ.get("POWERTOOLS_LOG_LEVEL", "").upper()
if _level in logging.getLevelNamesMapping():
    # Powertools prefers Lambda's own log level, which must stay low enough for lines with metrics.
    logging.getLogger(logger.name).setLevel(_level)

_METRICS: Final = [
    {"Name": "Latency", "Unit": "Milliseconds"},
    {"Name": "RoundTrips", "Unit": "Count"},
    {"Name": "ColdStart", "Unit": "Count"},
]
"""Metrics that API Gateway, DynamoDB and Lambda do not provide free of charge. Latency is measured
inside the functions, over all of them."""

_ROUTE_METRICS: Final = [
    {"Name": "Requests", "Unit": "Count"},
    {"Name": "ClientErrors", "Unit": "Count"},
    {"Name": "ServerErrors", "Unit": "Count"},
    {"Name": "Latency", "Unit": "Milliseconds"},
    {"Name": "ReadUnits", "Unit": "Count"},
    {"Name": "WriteUnits", "Unit": "Count"},
    {"Name": "RoundTrips", "Unit": "Count"},
    {"Name": "ColdStart", "Unit": "Count"},
]

REPORTED_COLLECTION_GB: Final = 1.0
"""Size of an item collection from which it is reported; DynamoDB's limit is 10 GB."""

_COLLECTION_METRIC: Final = {"Name": "CollectionGB", "Unit": "Gigabytes"}
_COLLECTION_METRICS: Final = {
    "Namespace": NAMESPACE,
    "Dimensions": [["table"]],
    "Metrics": [_COLLECTION_METRIC],
}
_UNAVAILABLE_METRIC: Final = {"Name": "Unavailable", "Unit": "Count"}
"""Written only if there is one: CloudWatch charges for a metric while it has values."""
_UNAVAILABLE_METRICS: Final = {
    "Namespace": NAMESPACE,
    "Dimensions": [["table"]],
    "Metrics": [_UNAVAILABLE_METRIC],
}
_metrics_enabled: Final = os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() not in (
    "1",
    "true",
)
_route_metrics_enabled: Final = os.environ.get("ROUTE_METRICS", "") == "true"
_invocations = iter((1,))
_memory_mb: Final = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or 0)
"""Memory of the function; 0 outside of Lambda."""

_requests: Final = logging.getLogger(f"{logger.name}.requests")
if _metrics_enabled:
    # Alarms need these lines whatever LOG_LEVEL is.
    _requests.setLevel(logging.INFO)


def seconds(values: Mapping[str, float], fields: Mapping[str, object]) -> None:
    """Logs a line with CloudWatch metrics whose unit is Seconds, by name in ``values``, and with
    further fields."""
    line: dict[str, object] = {"table": settings().table_name, **fields, **values}
    metrics = [{"Name": name, "Unit": "Seconds"} for name in values]
    directive = {"Namespace": NAMESPACE, "Dimensions": [["table"]], "Metrics": metrics}
    _write("seconds", line, [directive])


def costs_of(seconds: float, measurement: Measurement) -> dict[str, object]:
    """Returns the fields of a request's log line that say what it has cost: milliseconds, capacity
    units and round trips of DynamoDB."""
    return {
        "Latency": round(seconds * 1000, 3),
        "ReadUnits": measurement.read_units,
        "WriteUnits": measurement.write_units,
        "RoundTrips": measurement.round_trips,
    }


def log_request(
    *,
    rpc: str,
    method: str,
    status: int,
    request_id: str,
    seconds: float,
    measurement: Measurement,
    is_unavailable: bool = False,
    audit: Mapping[str, object] | None = None,
) -> None:
    """Logs the line of a request, with its entry for the audit (:mod:`mlcore.http.audit`). The
    dimension of its metrics is the table, and, if ``ROUTE_METRICS`` is on, the RPC; statuses or ids
    as dimensions would multiply the cost.

    Args:
        is_unavailable: whether the request failed because the table, or a service that is needed,
            did not serve it: 503, or 429 where nothing was written.
    """
    cold = next(_invocations, 0)
    fields: dict[str, object] = {
        "rpc": rpc,
        "table": settings().table_name,
        "method": method,
        "status": status,
        "request_id": request_id,
        "Requests": 1,
        "ClientErrors": int(400 <= status < 500),
        "ServerErrors": int(status >= 500),
        **costs_of(seconds, measurement),
        "ColdStart": cold,
    }
    if audit is not None:
        fields["audit"] = audit
        if _memory_mb:
            fields["MemoryMB"] = _memory_mb
    metrics: list[Mapping[str, object]] = [
        {"Namespace": NAMESPACE, "Dimensions": [["table"]], "Metrics": _METRICS}
    ]
    if _route_metrics_enabled:
        metrics.append({"Namespace": NAMESPACE, "Dimensions": [["rpc"]], "Metrics": _ROUTE_METRICS})
    size, collection = measurement.largest
    if size >= REPORTED_COLLECTION_GB:
        fields.update(CollectionGB=size, collection=collection)
        metrics.append(_COLLECTION_METRICS)
    if is_unavailable:
        fields["Unavailable"] = 1
        metrics.append(_UNAVAILABLE_METRICS)
    _write("request", fields, metrics)


def _write(
    message: str, fields: dict[str, object], metrics: Sequence[Mapping[str, object]]
) -> None:
    if _metrics_enabled:
        fields["_aws"] = {
            "Timestamp": time.time_ns() // 1_000_000,
            "CloudWatchMetrics": metrics,
        }
    _requests.info(message, extra=fields)
