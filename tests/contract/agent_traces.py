"""Traces of an agent: twenty spans with a question and an answer each, in one export, and the
trace's info."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from typing import Any

from tests.contract.trace_calls import Fields, export, span, start, tell
from tests.contract.trace_story import TOLD

SPANS = 20


def trace_of(number: int) -> str:
    """The id of a trace, without the prefix of MLflow."""
    return md5(b"agent %d" % number).hexdigest()


def send(number: int, call: Callable[..., Any], experiment_id: str = "0") -> None:
    """Sends a trace.

    Args:
        call: makes a call: it gets the function and its arguments.
    """
    trace = trace_of(number)
    assert call(export, experiment_id, _spans(trace)).status == 200
    assert call(tell, "POST", "3.0/traces", start(experiment_id, f"tr-{trace}", **TOLD))


def tag(number: int) -> None:
    """Changes a trace that was sent."""
    tell("PATCH", f"3.0/traces/tr-{trace_of(number)}/tags", {"key": "seen", "value": "yes"})


def _spans(trace: str) -> list[Fields]:
    return [
        span(
            trace,
            index,
            None if index == 1 else 1,
            start=index,
            end=900 if index == 1 else index + 5,
            **{
                "mlflow.spanInputs": {"question": text_of(trace, index)},
                "mlflow.spanOutputs": text_of(trace, -index),
                "mlflow.chat.tokenUsage": {"input_tokens": index, "output_tokens": 1},
            },
        )
        for index in range(1, SPANS + 1)
    ]


def text_of(trace: str, number: int) -> str:
    """Some 400 characters that compress about as words do."""
    return " ".join(md5(f"{trace} {number} {word}".encode()).hexdigest()[:5] for word in range(66))
