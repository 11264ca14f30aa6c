"""Traces, calls of the gateway and feedback, made through the API."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.contract.trace_calls import ask, resource_spans, span, start

Json = dict[str, Any]
Send = Callable[[str, Json, Mapping[str, str]], int]
"""Posts to a path, and returns the status."""

FIRST = datetime(2026, 1, 5, tzinfo=UTC)
DAYS = 4
HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\">",
    '\'; DROP TABLE "traces" --',
    "\u202egnp.exe",
    "(others)",
    "x" * 240,
)
"""Names that users may choose."""


class Made(NamedTuple):
    """One trace as it was made."""

    trace_id: str
    experiment: str
    started: datetime
    name: str
    state: str
    latency_ms: int
    user: str | None
    session: str | None
    tokens: tuple[int, int, int] | None
    """Input, output and those of the input from the cache."""
    cost: float | None
    call: tuple[str, str, str | None] | None
    """Of a call of the gateway: endpoint, model, and the user who was logged in."""
    model_id: str | None
    tools: tuple[tuple[str, int, str | None], ...]
    """Name, milliseconds and error of each call of a tool."""
    feedback: tuple[tuple[str, Any, str, str], ...]
    """Name, value, kind of source and source of each assessment."""


def _to_function(path: str, body: Json, headers: Mapping[str, str]) -> int:
    return ask("POST", path, body, headers).status


def made(
    experiments: list[str], count: int, seed: int, send: Send = _to_function, tool: str = ""
) -> list[Made]:
    """Makes random traces through the API.

    Args:
        tool: the name of a tool that one of them calls often, which fails with this message.
    """
    rng = random.Random(seed)
    traces = [_trace(rng, number, experiments) for number in range(count)]
    if tool:
        traces[1] = traces[1]._replace(tools=((tool, 5, tool),) * 9)
    for number, trace in enumerate(traces):
        _make(trace, number, send)
    return traces


def _trace(rng: random.Random, number: int, experiments: list[str]) -> Made:
    is_call = number % 3 == 0
    tokens = (rng.randrange(10, 99), rng.randrange(5, 50), rng.randrange(9))
    model = rng.choice((*HOSTILE, *(f"model-{index}" for index in range(8))))
    user = rng.choice((*HOSTILE, *(f"user-{index}" for index in range(9)), None))
    endpoint = f"e{rng.randrange(12)}"
    return Made(
        trace_id=f"{number + 1:032x}",
        experiment=rng.choice(experiments),
        started=FIRST + timedelta(minutes=rng.randrange(DAYS * 24 * 60), milliseconds=number),
        name=f"gateway/{endpoint}" if is_call else rng.choice(("answer", "plan", *HOSTILE)),
        state=rng.choice(("OK", "OK", "OK", "ERROR")),
        latency_ms=rng.randrange(1, 9000),
        user=None if is_call else user,
        session=None if is_call or rng.random() < 0.3 else f"s{rng.randrange(12)}",
        tokens=None if rng.random() < 0.2 else tokens,
        cost=None if rng.random() < 0.2 else rng.randrange(1, 900) / 1000,
        call=(endpoint, model, user) if is_call else None,
        model_id=None if is_call else rng.choice((None, "m-1", "m-2", "m-3")),
        tools=()
        if is_call
        else tuple(
            (
                f"tool-{rng.randrange(13)}",
                rng.randrange(1, 500),
                rng.choice((None, None, f"it failed at {number}", HOSTILE[0])),
            )
            for _ in range(rng.randrange(3))
        ),
        feedback=tuple(
            (
                f"name-{rng.randrange(4)}",
                rng.choice((True, False, "yes", "no", "pass", 3, 4.5, "a text")),
                *rng.choice((("HUMAN", "ann"), ("LLM_JUDGE", "gpt"), ("CODE", "f"))),
            )
            for _ in range(rng.randrange(4))
        ),
    )


def _make(trace: Made, number: int, send: Send) -> None:
    metadata = {
        "mlflow.trace.user": trace.user,
        "mlflow.trace.session": trace.session,
        "mlflow.modelId": trace.model_id,
        "mlflow.trace.cost": None if trace.cost is None else json.dumps({"total_cost": trace.cost}),
    }
    spans = [span(trace.trace_id, 1)]
    if trace.tokens is not None:
        tokens_in, tokens_out, cached = trace.tokens
        usage = {"input_tokens": tokens_in, "output_tokens": tokens_out}
        usage["total_tokens"] = tokens_in + tokens_out
        usage["cache_read_input_tokens"] = cached
        metadata["mlflow.trace.tokenUsage"] = json.dumps(usage)
    if trace.call is not None:
        endpoint, model, user = trace.call
        metadata["mlflow.gateway.endpointId"] = f"id of {endpoint}"
        metadata["mlflow.auth.username"] = user
        attributes: Json = {"mlflow__llm__provider": "openai", "mlflow__llm__model": model}
        spans.append(span(trace.trace_id, 2, 1, **attributes))
    for index, (tool, lasted, error) in enumerate(trace.tools):
        begin = 1000 * number + index
        called = span(
            trace.trace_id, 10 + index, 1, start=begin, end=begin + lasted, mlflow__spanType="TOOL"
        )
        status = {"code": 1} if error is None else {"code": 2, "message": error}
        spans.append({**called, "name": tool, "status": status})
    headers = {"x-mlflow-experiment-id": trace.experiment}
    assert send("/v1/traces", resource_spans(spans), headers) == 200
    about = start(
        trace.experiment,
        f"tr-{trace.trace_id}",
        request_time=trace.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        execution_duration=f"{trace.latency_ms / 1000:.3f}s",
        state=trace.state,
        tags={"mlflow.traceName": trace.name},
        trace_metadata={key: value for key, value in metadata.items() if value is not None},
    )
    assert send("/api/3.0/mlflow/traces", about, {}) == 200
    for name, value, kind, source in trace.feedback:
        assessment = {
            "assessment_name": name,
            "source": {"source_type": kind, "source_id": source},
            "feedback": {"value": value},
        }
        path = f"/api/3.0/mlflow/traces/tr-{trace.trace_id}/assessments"
        assert send(path, {"assessment": assessment}, {}) == 200
