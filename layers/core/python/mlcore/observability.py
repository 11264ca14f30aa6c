"""One structured log line for each request, which is at the same time its CloudWatch metrics (EMF).

The line carries identifiers, counts and times; never a header, a body, a parameter or a secret.
CloudWatch asks for 30 cents a month for each metric and value of its dimensions, so metrics are few
and of the table; those of each route are a choice (``ROUTE_METRICS``).
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
    # Powertools takes Lambda's own level for the more important one, and that one is the lowest
    # that a line with metrics may have.
    logging.getLogger(logger.name).setLevel(_level)

_METRICS: Final = [
    {"Name": "Latency", "Unit": "Milliseconds"},
    {"Name": "RoundTrips", "Unit": "Count"},
    {"Name": "ColdStart", "Unit": "Count"},
]
"""What neither API Gateway nor DynamoDB nor Lambda measures for nothing. Latency is the function's
own, of all functions."""

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

WORTH_TELLING_GB: Final = 1.0
"""Of 10 GB, at which an item collection ends."""

_FULLNESS: Final = {"Name": "CollectionGB", "Unit": "Gigabytes"}
_SIZE: Final = {
    "Namespace": NAMESPACE,
    "Dimensions": [["table"]],
    "Metrics": [_FULLNESS],
}
_metrics_wanted: Final = os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() not in (
    "1",
    "true",
)
_route_metrics_wanted: Final = os.environ.get("ROUTE_METRICS", "") == "true"
_invocations = iter((1,))

_requests: Final = logging.getLogger(f"{logger.name}.requests")
if _metrics_wanted:
    # Whatever LOG_LEVEL leaves out, alarms read what these lines tell.
    _requests.setLevel(logging.INFO)


def count(values: Mapping[str, float], fields: Mapping[str, object]) -> None:
    """Writes a line with metrics of the deployment, by name, and what else it tells."""
    _tell("count", "Count", values, fields)


def seconds(values: Mapping[str, float], fields: Mapping[str, object]) -> None:
    """As :func:`count`, of metrics that are times."""
    _tell("seconds", "Seconds", values, fields)


def _tell(
    message: str, unit: str, values: Mapping[str, float], fields: Mapping[str, object]
) -> None:
    line: dict[str, object] = {"table": settings().table_name, **fields, **values}
    told = [{"Name": name, "Unit": unit} for name in values]
    _write(message, line, [{"Namespace": NAMESPACE, "Dimensions": [["table"]], "Metrics": told}])


def log_request(
    *, rpc: str, method: str, status: int, request_id: str, seconds: float, measurement: Measurement
) -> None:
    """Writes the line. Dimensions of metrics are the table, or where it is wanted the RPC: a status
    or an id would multiply the series."""
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
        "Latency": round(seconds * 1000, 3),
        "ReadUnits": measurement.read_units,
        "WriteUnits": measurement.write_units,
        "RoundTrips": measurement.round_trips,
        "ColdStart": cold,
    }
    metrics: list[Mapping[str, object]] = [
        {"Namespace": NAMESPACE, "Dimensions": [["table"]], "Metrics": _METRICS}
    ]
    if _route_metrics_wanted:
        metrics.append({"Namespace": NAMESPACE, "Dimensions": [["rpc"]], "Metrics": _ROUTE_METRICS})
    size, collection = measurement.largest
    if size >= WORTH_TELLING_GB:
        fields.update(CollectionGB=size, collection=collection)
        metrics.append(_SIZE)
    _write("request", fields, metrics)


def _write(
    message: str, fields: dict[str, object], metrics: Sequence[Mapping[str, object]]
) -> None:
    if _metrics_wanted:
        fields["_aws"] = {
            "Timestamp": time.time_ns() // 1_000_000,
            "CloudWatchMetrics": metrics,
        }
    _requests.info(message, extra=fields)
