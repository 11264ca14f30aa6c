"""One structured log line for each request, which is at the same time its CloudWatch metrics (EMF).

The line carries identifiers, counts and times; never a header, a body, a parameter or a secret.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final

from aws_lambda_powertools.logging import Logger

from mlcore.db.capacity import Measurement
from mlcore.settings import settings

NAMESPACE: Final = "MLflowServerless"

logger: Final = Logger(service=os.environ.get("POWERTOOLS_SERVICE_NAME", "mlflow"))

_METRICS: Final = [
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

_SIZE: Final = {
    "Namespace": NAMESPACE,
    "Dimensions": [["table"]],
    "Metrics": [{"Name": "CollectionGB", "Unit": "Gigabytes"}],
}
_metrics_wanted: Final = os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() not in (
    "1",
    "true",
)
_invocations = iter((1,))


def log_request(
    *, rpc: str, method: str, status: int, request_id: str, seconds: float, measurement: Measurement
) -> None:
    """Writes the line. The only metric dimension is the RPC, of the size of an item collection the
    table: a status or an id would multiply the series."""
    cold = next(_invocations, 0)
    fields: dict[str, object] = {
        "rpc": rpc,
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
        {"Namespace": NAMESPACE, "Dimensions": [["rpc"]], "Metrics": _METRICS}
    ]
    size, collection = measurement.largest
    if size >= WORTH_TELLING_GB:
        fields.update(CollectionGB=size, collection=collection, table=settings().table_name)
        metrics.append(_SIZE)
    if _metrics_wanted:
        fields["_aws"] = {
            "Timestamp": time.time_ns() // 1_000_000,
            "CloudWatchMetrics": metrics,
        }
    logger.info("request", extra=fields)
