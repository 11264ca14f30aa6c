"""Checks that a trace can be read as soon as it was exported in OpenTelemetry's protocol."""

from __future__ import annotations

import time
from uuid import uuid4

from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import Wrong


def export(checkup: Checkup) -> str:
    """A step of ``doctor``: exports a trace with two spans, and checks that it can be read at once,
    with both spans. Returns the result as a text. Raises Wrong if it cannot be read so, LeftOut if
    an earlier step failed."""
    api, experiment = checkup.api, checkup.fact("experiment")
    trace, now = uuid4().hex, time.time_ns()
    root = {
        "traceId": trace,
        "spanId": "0000000000000001",
        "name": "doctor",
        "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 1_000_000),
    }
    spans = [root, {**root, "spanId": "0000000000000002", "parentSpanId": root["spanId"]}]
    answer = api.call(
        "POST",
        "/v1/traces",
        {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]},
        headers={"x-mlflow-experiment-id": experiment},
    )
    expect(answer.status == 200, f"/v1/traces: {answer.status} {answer.text[:200]}")
    trace_id = f"tr-{trace}"
    remove = {"experiment_id": experiment, "request_ids": [trace_id]}
    checkup.will_remove(
        "the trace", lambda: api.ask("POST", "2.0/mlflow/traces/delete-traces", remove)
    )
    whole = api.ask("GET", "3.0/mlflow/traces/get", trace_id=trace_id)["trace"]
    count = len(whole.get("spans", ()))
    if count != len(spans):
        raise Wrong(f"{len(spans)} spans were sent, {count} are read")
    return f"trace {trace_id} with {count} spans"
