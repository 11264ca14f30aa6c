"""The entities of a trace and of its assessments."""

from __future__ import annotations

from typing import Any, NamedTuple


class Assessment(NamedTuple):
    """Feedback on a trace, an expectation of it, or a reference to an issue."""

    assessment_id: str
    trace_id: str
    name: str
    kind: str
    """``feedback``, ``expectation`` or ``issue``."""
    value: Any
    """Any JSON value; for an issue ``{"issue_name": …}``."""
    error: dict[str, str | None] | None
    """``error_code``, ``error_message`` and ``stack_trace`` of a feedback that failed."""
    source_type: str
    source_id: str | None
    create_time: int
    last_update_time: int
    run_id: str | None
    span_id: str | None
    rationale: str | None
    metadata: dict[str, str] | None
    overrides: str | None
    valid: bool


class Trace(NamedTuple):
    """A trace without its spans (MLflow's ``TraceInfo``). Its name is the tag
    ``mlflow.traceName``."""

    trace_id: str
    experiment_id: str
    request_time: int
    execution_duration: int | None
    state: str
    """OK, ERROR, IN_PROGRESS or STATE_UNSPECIFIED."""
    client_request_id: str | None
    request_preview: str | None
    response_preview: str | None
    trace_metadata: dict[str, str]
    tags: dict[str, str]
    assessments: tuple[Assessment, ...] = ()
    """In the order in which the server got them."""
    prompts: tuple[str, ...] = ()
    """Linked prompt versions, ``name/version``."""
