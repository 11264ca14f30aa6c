"""Exports traces with spans and assessments into the database of MLflow's own server: through its
store, which keeps their ids. Then corrects the fields that the store chose itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from mlcore.entities.traces import Assessment, Trace
from mlcore.reserved_tags import ARTIFACT_LOCATION, TRACE_NAME
from mlcore.spans.names import SPANS_LOCATION_TAG
from operate.export.stock_store import StockStore
from operate.transfer.mlflow_client import Json

_PARTS: Final = (
    *("trace_tags", "trace_request_metadata", "trace_metrics"),
    "assessments",
)


def put_trace(store: StockStore, trace: Trace, info_fields: Json, spans: Sequence[Json]) -> None:
    """Writes a trace with its spans and assessments; an existing trace with the same id is
    replaced.

    Args:
        trace: the trace, in an experiment of the target.
        info_fields: the same trace as the source's REST API returned it.
        spans: the spans in MLflow's JSON; empty if the source keeps them in an artifact file.
    """
    from mlflow.entities import Span, TraceInfo  # noqa: PLC0415 - installed if there is a store

    location = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": trace.experiment_id},
    }
    # The store adds both by itself. A trace without spans must not have them: it would be
    # unreadable.
    added = (ARTIFACT_LOCATION, SPANS_LOCATION_TAG)
    tags = {key: text for key, text in trace.tags.items() if key not in added}
    fields = {**info_fields, "trace_location": location, "assessments": [], "tags": tags}
    info = TraceInfo.from_dict(fields)
    _delete(store, trace.trace_id)
    with store.writing() as own:
        own.start_trace(info)
        if spans:
            own.log_spans(trace.experiment_id, [Span.from_dict(span) for span in spans])
    _settle(store, trace)


def _delete(store: StockStore, trace_id: str) -> None:
    with store.transaction() as rows:
        for table in ("span_metrics", "spans"):
            rows.delete(table, trace_id=trace_id)
        for table in _PARTS:
            rows.delete(table, **{_key_of(table): trace_id})
        rows.delete("trace_info", request_id=trace_id)


def _key_of(table: str) -> str:
    return "trace_id" if table == "assessments" else "request_id"


def _settle(store: StockStore, trace: Trace) -> None:
    """Overwrites the fields that MLflow's store derived from spans or added, and writes the
    assessments, for which the store would choose other ids and times."""
    key = {"request_id": trace.trace_id}
    with store.transaction() as rows:
        rows.update(
            "trace_info",
            {
                "timestamp_ms": trace.request_time,
                "execution_time_ms": trace.execution_duration,
                "status": trace.state,
                "client_request_id": trace.client_request_id,
                "request_preview": trace.request_preview,
                "response_preview": trace.response_preview,
            },
            **key,
        )
        known = rows.first("trace_info", **key)
        in_column = TRACE_NAME if known and "trace_name" in known else ""
        if in_column:
            rows.update("trace_info", {"trace_name": trace.tags.get(TRACE_NAME)}, **key)
        tags = [
            {"key": name, "value": text} for name, text in trace.tags.items() if name != in_column
        ]
        rows.replace("trace_tags", key, tags)
        for row in rows.all("trace_request_metadata", **key):
            name = row["key"]
            if name not in trace.trace_metadata:
                rows.delete("trace_request_metadata", **key, key=name)
            elif trace.trace_metadata[name] != row["value"]:
                text = trace.trace_metadata[name]
                rows.update("trace_request_metadata", {"value": text}, **key, key=name)
        rows.replace(
            "assessments",
            {"trace_id": trace.trace_id},
            [_assessment(assessment, trace) for assessment in trace.assessments],
        )


def _assessment(assessment: Assessment, trace: Trace) -> dict[str, Any]:
    value = assessment.value
    is_number = isinstance(value, int | float)
    metadata = dict(assessment.metadata or {})
    return {
        "assessment_id": assessment.assessment_id,
        "name": assessment.name,
        "assessment_type": assessment.kind,
        "value": json.dumps(value),
        "error": json.dumps(assessment.error) if assessment.error else None,
        "created_timestamp": assessment.create_time,
        "last_updated_timestamp": assessment.last_update_time,
        "experiment_id": int(trace.experiment_id),
        "trace_timestamp_ms": trace.request_time,
        "aggregate_value": float(value) if is_number else None,
        "is_numeric_value": is_number,
        "source_type": assessment.source_type,
        "source_id": assessment.source_id,
        "run_id": assessment.run_id,
        "span_id": assessment.span_id,
        "rationale": assessment.rationale,
        "overrides": assessment.overrides,
        "valid": assessment.valid,
        "assessment_metadata": json.dumps(metadata) if metadata else None,
    }
