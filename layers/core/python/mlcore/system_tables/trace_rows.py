"""Converts stored traces to rows of ``traces`` and ``assessments``, without reading anything.

Columns that also exist in Databricks' view of traces have the same names. Times are milliseconds
since 1970 here, and microseconds in the tables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from mlcore import reserved_tags
from mlcore.entities.traces import Assessment, Trace
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace
from mlcore.spans import names, trace_state, trace_totals
from mlcore.system_tables.run_rows import within


class TraceRow(NamedTuple):
    """A row of ``traces``, without the column of the AWS account.

    Tokens and costs are those of the trace's metadata ``mlflow.trace.tokenUsage`` and
    ``mlflow.trace.cost``; None where these have none.
    """

    trace_id: str
    experiment_id: str
    workspace_id: str
    update_time: int
    client_request_id: str | None
    trace_name: str | None
    request_time: int
    execution_duration_ms: int | None
    state: str
    user_id: str | None
    session_id: str | None
    source_run_id: str | None
    request_preview: str | None
    response_preview: str | None
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation_input_tokens: int | None
    input_cost: float | None
    output_cost: float | None
    total_cost: float | None
    linked_prompts: list[str]
    trace_metadata: dict[str, str]
    tags: dict[str, str]


class AssessmentRow(NamedTuple):
    """A row of ``assessments``, without the column of the AWS account.

    ``value`` is JSON. ``numeric_value`` is the value if it is a finite number, 1 or 0 if it is a
    boolean, else None.
    """

    trace_id: str
    experiment_id: str
    workspace_id: str
    request_time: int
    assessment_id: str
    assessment_name: str
    assessment_type: str
    value: str | None
    numeric_value: float | None
    error_code: str | None
    error_message: str | None
    source_type: str
    source_id: str | None
    create_time: int
    last_update_time: int
    run_id: str | None
    span_id: str | None
    rationale: str | None
    overrides: str | None
    valid: bool
    metadata: dict[str, str]


def rows_of(stored: StoredTrace) -> tuple[TraceRow, Iterator[AssessmentRow]]:
    """Converts a stored trace to its row and its assessments' rows in the system tables."""
    trace = traces.entity(stored)
    return _trace_row(stored, trace), _assessment_rows(stored, trace)


def _trace_row(stored: StoredTrace, trace: Trace) -> TraceRow:
    metadata = trace.trace_metadata
    tokens = trace_totals.amounts_of(
        metadata.get(reserved_tags.TRACE_TOKEN_USAGE), names.TOKEN_KEYS, trace_totals.token_count
    )
    cost = trace_totals.amounts_of(
        metadata.get(reserved_tags.TRACE_COST), names.COST_KEYS, trace_totals.finite_number
    )
    return TraceRow(
        trace_id=trace.trace_id,
        experiment_id=trace.experiment_id,
        workspace_id=stored.experiment.workspace,
        update_time=within(stored.item.updated_at or 0),
        client_request_id=trace.client_request_id,
        trace_name=trace.tags.get(reserved_tags.TRACE_NAME),
        request_time=within(trace.request_time),
        execution_duration_ms=trace_state.bounded_duration(trace.execution_duration),
        state=trace.state,
        user_id=metadata.get(reserved_tags.TRACE_USER),
        session_id=metadata.get(reserved_tags.TRACE_SESSION),
        source_run_id=metadata.get(reserved_tags.SOURCE_RUN),
        request_preview=trace.request_preview,
        response_preview=trace.response_preview,
        input_tokens=tokens.get("input_tokens"),
        output_tokens=tokens.get("output_tokens"),
        total_tokens=tokens.get("total_tokens"),
        cache_read_input_tokens=tokens.get("cache_read_input_tokens"),
        cache_creation_input_tokens=tokens.get("cache_creation_input_tokens"),
        input_cost=cost.get("input_cost"),
        output_cost=cost.get("output_cost"),
        total_cost=cost.get("total_cost"),
        linked_prompts=list(trace.prompts),
        trace_metadata=metadata,
        tags=trace.tags,
    )


def _assessment_rows(stored: StoredTrace, trace: Trace) -> Iterator[AssessmentRow]:
    for assessment in trace.assessments:
        error = assessment.error or {}
        yield AssessmentRow(
            trace_id=trace.trace_id,
            experiment_id=trace.experiment_id,
            workspace_id=stored.experiment.workspace,
            request_time=within(trace.request_time),
            assessment_id=assessment.assessment_id,
            assessment_name=assessment.name,
            assessment_type=assessment.kind,
            value=_value_text(assessment),
            numeric_value=_number(assessment.value),
            error_code=error.get("error_code"),
            error_message=error.get("error_message"),
            source_type=assessment.source_type,
            source_id=assessment.source_id,
            create_time=within(assessment.create_time),
            last_update_time=within(assessment.last_update_time),
            run_id=assessment.run_id,
            span_id=assessment.span_id,
            rationale=assessment.rationale,
            overrides=assessment.overrides,
            valid=assessment.valid,
            metadata=assessment.metadata or {},
        )


def _value_text(assessment: Assessment) -> str | None:
    if assessment.value is None:
        return None
    return json.dumps(assessment.value, ensure_ascii=False)


def _number(value: Any) -> float | None:
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
