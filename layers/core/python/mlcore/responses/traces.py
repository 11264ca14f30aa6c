"""Traces and assessments in the shapes of MLflow's protobuf messages, versions 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.traces import Assessment, Trace
from mlcore.wire.times import duration, point

MAX_METADATA: Final = 250
MAX_TAG_KEY: Final = 250
MAX_TAG_VALUE: Final = 4096
MAX_STACK_TRACE: Final = 10_000
_CUT_STACK_TRACE: Final = "[Stack trace is truncated]\n...\n"
JSON_FORMAT: Final = "JSON_FORMAT"


def trace_info(trace: Trace) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trace_id": trace.trace_id,
        "client_request_id": trace.client_request_id,
        "trace_location": {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": trace.experiment_id},
        },
        "request_preview": trace.request_preview,
        "response_preview": trace.response_preview,
        "request_time": point(trace.request_time),
        "execution_duration": (
            None if trace.execution_duration is None else duration(trace.execution_duration)
        ),
        "state": trace.state,
        "trace_metadata": _metadata(trace) or None,
        "assessments": [assessment(one) for one in trace.assessments] or None,
        "tags": _tags(trace) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def trace_info_v2(trace: Trace) -> dict[str, Any]:
    status = "TRACE_STATUS_UNSPECIFIED" if trace.state == "STATE_UNSPECIFIED" else trace.state
    found: dict[str, Any] = {
        "request_id": trace.trace_id,
        "experiment_id": trace.experiment_id,
        "timestamp_ms": trace.request_time,
        "execution_time_ms": trace.execution_duration or 0,
        "status": status,
        "request_metadata": _pairs(_metadata(trace)),
        "tags": _pairs(_tags(trace)),
    }
    return {name: value for name, value in found.items() if value != []}


def assessment(one: Assessment) -> dict[str, Any]:
    source: dict[str, str] = {"source_type": one.source_type}
    if one.source_id is not None:
        source["source_id"] = one.source_id
    found: dict[str, Any] = {
        "assessment_id": one.assessment_id,
        "assessment_name": one.name,
        "trace_id": one.trace_id,
        "span_id": one.span_id,
        "source": source,
        "create_time": point(one.create_time),
        "last_update_time": point(one.last_update_time),
        one.kind: _value(one),
        "rationale": one.rationale,
        "metadata": one.metadata or None,
        "overrides": one.overrides or None,
        "valid": one.valid,
    }
    return {name: value for name, value in found.items() if value is not None}


def _value(one: Assessment) -> dict[str, Any]:
    if one.kind == "issue":
        return dict(one.value)
    if one.kind == "expectation":
        if isinstance(one.value, dict | list):
            text = json.dumps(one.value)
            return {"serialized_value": {"serialization_format": JSON_FORMAT, "value": text}}
        return {"value": one.value}
    found: dict[str, Any] = {"value": one.value}
    if one.error is not None:
        error = {name: text for name, text in one.error.items() if text or name == "error_code"}
        stack = error.get("stack_trace") or ""
        if len(stack) > MAX_STACK_TRACE:
            kept = MAX_STACK_TRACE - len(_CUT_STACK_TRACE)
            error["stack_trace"] = _CUT_STACK_TRACE + stack[-kept:]
        found["error"] = error
    return found


def _metadata(trace: Trace) -> dict[str, str]:
    return {key[:MAX_METADATA]: value[:MAX_METADATA] for key, value in trace.trace_metadata.items()}


def _tags(trace: Trace) -> dict[str, str]:
    return {key[:MAX_TAG_KEY]: value[:MAX_TAG_VALUE] for key, value in trace.tags.items()}


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in texts.items()]
