"""A trace that is told in many ways: its spans, what is told about it, and what it shows then."""

from __future__ import annotations

import itertools
import random

from tests.contract.trace_calls import Fields, span, whole

_numbers = itertools.count(1)


def new_trace() -> str:
    return f"{next(_numbers) << 64 | random.getrandbits(60):032x}"


USAGE = [{"input_tokens": n, "output_tokens": 1, "total_tokens": n + 1} for n in range(9)]


def story(trace: str) -> list[Fields]:
    """Spans in which every fact has more than one source, and of which some cost something."""
    usage, model = "mlflow.chat.tokenUsage", "mlflow.llm.model"
    return [
        span(
            trace,
            1,
            None,
            start=5,
            end=900,
            **{
                "mlflow.spanInputs": {"question": "why"},
                "mlflow.spanOutputs": "because",
                "mlflow.traceTag.team": "red",
                "user.id": "bob",
            },
        ),
        span(
            trace,
            2,
            1,
            start=10,
            end=800,
            **{usage: USAGE[5], model: "gpt-4o", "session.id": "s-1"},
        ),
        span(trace, 3, 2, start=20, end=30, **{usage: USAGE[7], model: "gpt-4o-mini"}),
        span(trace, 4, 1, start=3, end=950, **{usage: USAGE[2], "session.id": "s-0"}),
        span(trace, 5, 4, start=40, end=50),
        span(trace, 6, 5, start=41, end=49, **{usage: USAGE[8], model: "gpt-4o"}),
    ]


TOLD: Fields = {
    "request_time": "2023-11-14T22:13:20.004Z",
    "execution_duration": "0.950s",
    "state": "OK",
    "request_preview": "short",
    "trace_metadata": {"mlflow.trace.session": "told", "other": "x"},
    "tags": {"mlflow.traceName": "story", "service.name": "mine"},
    "assessments": [
        {
            "assessment_name": "good",
            "source": {"source_type": "HUMAN", "source_id": "me"},
            "feedback": {"value": True},
            "create_time": "2023-11-14T22:13:21Z",
            "last_update_time": "2023-11-14T22:13:21Z",
        }
    ],
}


def seen(trace: str) -> Fields:
    """What a trace shows, but for its own ids."""
    whole_trace = whole(f"tr-{trace}")
    trace_info = whole_trace["trace_info"]
    trace_info["assessments"] = [
        assessment["feedback"] for assessment in trace_info.get("assessments", [])
    ]
    trace_info["tags"].pop("mlflow.artifactLocation")
    spans = [
        {
            **{name: value for name, value in item.items() if name != "trace_id"},
            "attributes": [
                pair for pair in item["attributes"] if pair["key"] != "mlflow.traceRequestId"
            ],
        }
        for item in whole_trace.get("spans", [])
    ]
    return {**trace_info, "trace_id": "", "spans": spans}
