"""Version 2 of the trace RPCs, used by MLflow clients up to 3.3: one request starts a trace,
another ends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from mlcore import errors
from mlcore.http import Request
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.responses import traces as responses
from mlcore.spans import trace_state
from mlcore.spans.trace_state import ReportedState
from traces import messages as m
from traces import service


def start_trace(message: m.StartTrace, request: Request) -> dict[str, Any]:
    tags = service.accepted_tags(_texts(message.tags))
    trace = service.create_or_complete(
        uuid4().hex,
        message.experiment_id,
        ReportedState(message.timestamp_ms),
        tags,
        service.normalized_metadata(_texts(message.request_metadata)),
        (),
        request.workspace,
    )
    return {"trace_info": responses.trace_info_v2(trace)}


def end_trace(message: m.EndTrace, request: Request) -> dict[str, Any]:
    tags = service.accepted_tags(_texts(message.tags))
    metadata = service.normalized_metadata(_texts(message.request_metadata))
    end_state = "STATE_UNSPECIFIED"
    if message.status and message.status != "TRACE_STATUS_UNSPECIFIED":
        end_state = message.status

    def end(current: StoredTrace) -> TraceChange:
        info = current.info
        before = trace_state.report_of(info) or ReportedState(info.request_time)
        report = before._replace(
            execution_duration=message.timestamp_ms - info.request_time, state=end_state
        )
        return trace_state.with_report(current, report, tags, metadata)

    trace = traces.find(message.request_id, request.workspace)
    written = traces.write(trace, end) if trace else None
    if written is None:
        raise errors.ResourceDoesNotExist(f"Trace with ID '{message.request_id}' not found.")
    return {"trace_info": responses.trace_info_v2(traces.after(written, end(written)))}


def get_trace_info(message: m.GetTraceInfo, request: Request) -> dict[str, Any]:
    trace = traces.find(message.request_id, request.workspace)
    if trace is None:
        raise service.missing(message.request_id)
    return {"trace_info": responses.trace_info_v2(traces.entity(trace))}


def _texts(pairs: Iterable[m.TraceTag | m.TraceRequestMetadata]) -> dict[str, str]:
    return {pair.key: pair.value for pair in pairs}
