"""MLflow's JSON of traces and assessments, in the protobuf forms of versions 2 and 3."""

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
    fields: dict[str, Any] = {
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
        "assessments": [assessment(assessment_) for assessment_ in trace.assessments] or None,
        "tags": _tags(trace) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def trace_info_v2(trace: Trace) -> dict[str, Any]:
    status = "TRACE_STATUS_UNSPECIFIED" if trace.state == "STATE_UNSPECIFIED" else trace.state
    fields: dict[str, Any] = {
        "request_id": trace.trace_id,
        "experiment_id": trace.experiment_id,
        "timestamp_ms": trace.request_time,
        "execution_time_ms": trace.execution_duration or 0,
        "status": status,
        "request_metadata": _pairs(_metadata(trace)),
        "tags": _pairs(_tags(trace)),
    }
    return {name: value for name, value in fields.items() if value != []}


def assessment(entity: Assessment) -> dict[str, Any]:
    source: dict[str, str] = {"source_type": entity.source_type}
    if entity.source_id is not None:
        source["source_id"] = entity.source_id
    fields: dict[str, Any] = {
        "assessment_id": entity.assessment_id,
        "assessment_name": entity.name,
        "trace_id": entity.trace_id,
        "span_id": entity.span_id,
        "source": source,
        "create_time": point(entity.create_time),
        "last_update_time": point(entity.last_update_time),
        entity.kind: _value(entity),
        "rationale": entity.rationale,
        "metadata": entity.metadata or None,
        "overrides": entity.overrides or None,
        "valid": entity.valid,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _value(entity: Assessment) -> dict[str, Any]:
    if entity.kind == "issue":
        return dict(entity.value)
    if entity.kind == "expectation":
        if isinstance(entity.value, dict | list):
            text = json.dumps(entity.value)
            return {"serialized_value": {"serialization_format": JSON_FORMAT, "value": text}}
        return {"value": entity.value}
    fields: dict[str, Any] = {"value": entity.value}
    if entity.error is not None:
        error = {name: text for name, text in entity.error.items() if text or name == "error_code"}
        stack = error.get("stack_trace") or ""
        if len(stack) > MAX_STACK_TRACE:
            kept = MAX_STACK_TRACE - len(_CUT_STACK_TRACE)
            error["stack_trace"] = _CUT_STACK_TRACE + stack[-kept:]
        fields["error"] = error
    return fields


def _metadata(trace: Trace) -> dict[str, str]:
    return {key[:MAX_METADATA]: value[:MAX_METADATA] for key, value in trace.trace_metadata.items()}


def _tags(trace: Trace) -> dict[str, str]:
    return {key[:MAX_TAG_KEY]: value[:MAX_TAG_VALUE] for key, value in trace.tags.items()}


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in texts.items()]
