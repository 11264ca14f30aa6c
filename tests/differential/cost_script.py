"""Traces calls of models with MLflow's client, and prints what they cost as it reads it.

python cost_script.py URI EXPERIMENT async|sync
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = str(sys.argv[3] == "async").lower()
os.environ["MLFLOW_ASYNC_TRACE_LOGGING_MAX_INTERVAL_MILLIS"] = "50"

import mlflow

CALLS = (
    ("gpt-4o", "openai", {"input_tokens": 1203, "output_tokens": 17, "total_tokens": 1220}),
    ("claude-sonnet-4-5", None, {"input_tokens": 900, "output_tokens": 5, "total_tokens": 905}),
    ("gpt-4o", None, {"input_tokens": 99, "output_tokens": 3, "cache_read_input_tokens": 64}),
    ("nobody's", "nobody", {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}),
)


def call(number: int) -> None:
    model, provider, usage = CALLS[number % len(CALLS)]
    with mlflow.start_span(f"call {number}", span_type="LLM") as span:
        span.set_inputs({"model": model, "messages": [{"role": "user", "content": "é"}]})
        span.set_attribute("mlflow.chat.tokenUsage", usage)
        if provider:
            span.set_attribute("mlflow.llm.provider", provider)
        span.set_outputs({"choices": []})


def agent(calls: int, *, rolls_up: bool) -> None:
    with mlflow.start_span(f"agent of {calls}", span_type="AGENT") as span:
        if rolls_up:
            span.set_attribute("mlflow.llm.model", "gpt-4o-mini")
            span.set_attribute("mlflow.chat.tokenUsage", CALLS[0][2])
        with mlflow.start_span("step"):
            for number in range(calls):
                call(number)


def read(experiment_id: str) -> list[dict[str, Any]]:
    """By name of the trace: costs, tokens and models as the client gives them."""
    traces = mlflow.search_traces(
        locations=[experiment_id], return_type="list", include_spans=True, max_results=100
    )
    rows = [
        {
            "name": trace.info.tags["mlflow.traceName"],
            "cost": trace.info.cost,
            "tokens": trace.info.token_usage,
            "spans": sorted(
                (span.name, span.span_type, span.model_name, span.llm_cost)
                for span in trace.data.spans
            ),
        }
        for trace in traces
    ]
    return sorted(rows, key=lambda row: str(row["name"]))


def main() -> None:
    mlflow.set_tracking_uri(sys.argv[1])
    experiment_id = mlflow.set_experiment(sys.argv[2]).experiment_id
    agent(1, rolls_up=False)
    agent(4, rolls_up=False)
    agent(2, rolls_up=True)
    call(0)
    call(3)
    mlflow.flush_trace_async_logging()
    for _ in range(400):
        rows = read(experiment_id)
        if len(rows) == 5 and sum(len(row["spans"]) for row in rows) == 15:
            break
        time.sleep(0.2)
    sys.stdout.write(json.dumps(rows))


if __name__ == "__main__":
    main()
