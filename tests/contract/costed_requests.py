"""Requests as their log lines have them, with what they cost, landed as CloudWatch does."""

from __future__ import annotations

import gzip
import json
from typing import Any

from mlcore.system_tables import landing_objects

NOON = 1_767_268_800_000
Json = dict[str, Any]


def request(number: int, **more: Any) -> Json:
    """A request as its log line has it."""
    return {
        "rpc": "/api/2.0/mlflow/runs/create",
        "method": "POST",
        "status": 200,
        "request_id": f"q{number}",
        "Latency": 12.5 + number,
        "ReadUnits": 0.5 * number,
        "WriteUnits": 2.0 + number,
        "RoundTrips": number % 3,
        "MemoryMB": 512,
        "audit": {
            "user": f"user {number % 2}",
            "login": "password",
            "address": "203.0.113.9",
            "workspace": f"team-{number % 3}",
            "outcome": "done",
            "entity": {"experiment_id": str(number % 4)},
        },
        **more,
    }


def dollars(line: Json, per_request: float = 1e-6) -> float:
    """The list prices of us-east-1: 1.00, 0.20, 0.125 and 0.625 for a million, and of a GB-second
    on arm64."""
    memory = line.get("MemoryMB", 1024) / 1024
    return float(
        per_request
        + 0.2e-6
        + line["Latency"] / 1000 * memory * 0.0000133334
        + line["ReadUnits"] * 0.125e-6
        + line["WriteUnits"] * 0.625e-6
    )


def land(requests: list[Json]) -> None:
    """As CloudWatch and Firehose do."""
    events = [
        {"id": f"id{number}", "timestamp": NOON + number, "message": json.dumps(line)}
        for number, line in enumerate(requests)
    ]
    message = {"messageType": "DATA_MESSAGE", "logGroup": "g", "logEvents": events}
    content = gzip.compress(json.dumps(message).encode())
    landing_objects.put("audit-2026-01-01/stream-1-a", content, landing_objects.AUDIT_LOGS)
