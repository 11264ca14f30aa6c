"""Traces to review, on both servers."""

from __future__ import annotations

from typing import Any

from tests.differential.rest import Call, Ref

V3 = "/api/3.0/mlflow/"


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, V3 + path, {} if body is None else body, **more)


def trace(trace_id: str, inside: str = "experiment", **fields: Any) -> Call:
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": Ref(inside)}}
    info = {
        "trace_id": trace_id,
        "trace_location": location,
        "request_time": "2026-03-10T13:40:00Z",
        "state": "OK",
    }
    return send("POST", "traces", {"trace": {"trace_info": info}})
