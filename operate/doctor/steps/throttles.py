"""Checks whether Lambda or DynamoDB throttled requests in the last hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from operate.doctor.checkup_state import Checkup, expect

_HOUR: Final = timedelta(hours=1)


def read(checkup: Checkup) -> str:
    """Checks by CloudWatch that no request to the stack's Lambda functions or DynamoDB table was
    throttled in the last hour. Returns the result as a text; raises Wrong, or LeftOut if no stack
    is checked."""
    aws = checkup.aws
    service = aws.client("cloudwatch")
    table = {"TableName": aws.outputs["TableName"]}
    queries = [
        ("AWS/Lambda", "Throttles", name, {"FunctionName": physical})
        for name, physical in aws.ids("AWS::Lambda::Function").items()
    ]
    queries += [
        ("AWS/DynamoDB", metric, metric, table)
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents")
    ]
    counts = {
        name: _sum(service, namespace, metric, dimensions)
        for namespace, metric, name, dimensions in queries
    }
    throttled = {name: count for name, count in counts.items() if count}
    expect(not throttled, f"throttled in the last hour: {throttled}")
    return f"nothing was throttled in the last hour ({len(counts)} metrics)"


def _sum(service: Any, namespace: str, metric: str, dimensions: dict[str, str]) -> float:
    now = datetime.now(UTC)
    points = service.get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=now - _HOUR,
        EndTime=now,
        Period=int(_HOUR.total_seconds()),
        Statistics=["Sum"],
    )["Datapoints"]
    return float(sum(point["Sum"] for point in points))
