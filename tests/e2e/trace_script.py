"""Makes traces with the MLflow client that this interpreter has, and checks what comes back."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import mlflow

URI, NAME = sys.argv[1], sys.argv[2]


def told(span: Any) -> tuple[Any, ...]:
    """A span as its author sees it."""
    return (
        span.name,
        span.span_type,
        span.start_time_ns,
        span.end_time_ns,
        json.dumps(span.inputs, sort_keys=True),
        json.dumps(span.outputs, sort_keys=True),
        span.status.status_code.value,
        span.attributes.get("k"),
        sorted((event.name, sorted(event.attributes)) for event in span.events),
    )


def make(number: int) -> tuple[str, list[tuple[Any, ...]]]:
    """A trace, and its spans as they were when they ended."""
    ended = []
    with mlflow.start_span("outer", span_type="CHAIN") as outer:
        outer.set_inputs({"question": f"why {number}?", "ü": [1, 2.5, None]})
        for step in range(3):
            with mlflow.start_span(f"step {step}", span_type="TOOL") as inner:
                inner.set_inputs({"step": step})
                inner.set_attributes({"k": {"a": [step]}})
                inner.set_outputs(["x" * 100, step])
            ended.append(inner)
        try:
            with mlflow.start_span("fails") as failing:
                ended.append(failing)
                raise ValueError("wanted")
        except ValueError:
            pass
        outer.set_outputs("because")
    ended.append(outer)
    trace_id = getattr(outer, "trace_id", None) or outer.request_id
    return trace_id, sorted(map(told, ended), key=str)


def main() -> None:
    mlflow.set_tracking_uri(URI)
    experiment = mlflow.set_experiment(NAME)
    made: list[tuple[str, list[tuple[Any, ...]]]] = []
    threads = [threading.Thread(target=lambda n=n: made.append(make(n))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made.append(make(3))
    if hasattr(mlflow, "flush_trace_async_logging"):
        mlflow.flush_trace_async_logging()
    client = mlflow.MlflowClient()
    for trace_id, spans in made:
        trace = client.get_trace(trace_id)
        assert sorted(map(told, trace.data.spans), key=str) == spans, (trace_id, spans)
        state = getattr(trace.info, "state", None) or trace.info.status
        assert state == "OK", state
    client.set_trace_tag(made[0][0], "colour", "blue")
    deadline = time.monotonic() + 10
    while True:
        found = client.search_traces(experiment_ids=[experiment.experiment_id])
        if len(found) == len(made) or time.monotonic() > deadline:
            break
    ids = {getattr(trace.info, "trace_id", None) or trace.info.request_id for trace in found}
    assert ids == {trace_id for trace_id, _ in made}, ids
    assert client.get_trace(made[0][0]).info.tags["colour"] == "blue"
    name = "trace_ids" if mlflow.__version__.startswith("3.") else "request_ids"
    chosen: Any = {name: [made[0][0]]}
    assert client.delete_traces(experiment.experiment_id, **chosen) == 1
    sys.stdout.write(f"ok {mlflow.__version__}\n")


main()
