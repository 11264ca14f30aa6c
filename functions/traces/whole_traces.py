"""Reading whole traces: from the packs of their spans, or from the file ``traces.json`` that older
clients keep them in."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from mlcore import artifacts, errors
from mlcore.artifacts.content import attachment, content_type
from mlcore.db.table import table
from mlcore.entities.traces import Trace
from mlcore.http import Request, Response
from mlcore.http.compression import fit
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import StoredTrace
from mlcore.responses import traces as responses
from mlcore.spans.names import ARTIFACT_LOCATION_TAG, IN_STORE, SPANS_LOCATION_TAG
from mlcore.spans.stored import StoredSpan, content
from traces import messages as m
from traces import span_responses
from traces.ingest import completeness
from traces.ingest.old_spans import in_order, stored_of_file

FILE: Final = "traces.json"
WAITS: Final = (0.5, 1.0)
"""Seconds to wait for spans that are on their way."""


def get_trace(message: m.GetTrace, request: Request) -> dict[str, Any]:
    """Three round trips: where the trace is, the trace, its spans."""
    for wait in (*WAITS, None):
        stored = traces.find(message.trace_id, request.workspace)
        if stored is None:
            raise errors.ResourceDoesNotExist(f"Trace with ID {message.trace_id} is not found.")
        trace = traces.entity(stored)
        found = _spans(stored, trace)
        if message.allow_partial or _is_complete(trace, found):
            return {"trace": _whole(trace, found or [])}
        if wait is not None:
            time.sleep(wait)
    raise errors.ResourceDoesNotExist(
        f"Trace with ID {message.trace_id} is not fully exported yet, please try again later."
    )


def batch_get_traces(message: m.BatchGetTraces, request: Request) -> dict[str, Any]:
    """The complete traces among those asked for."""
    found = _chosen(message, request)
    entities = list(map(traces.entity, found))
    spans = table.parallel([partial(_spans, *one) for one in zip(found, entities, strict=True)])
    whole = [
        _whole(trace, complete or [])
        for trace, complete in zip(entities, spans, strict=True)
        if _is_complete(trace, complete)
    ]
    return {"traces": whole} if whole else {}


def batch_get_trace_infos(message: m.BatchGetTraceInfos, request: Request) -> dict[str, Any]:
    found = [responses.trace_info(traces.entity(trace)) for trace in _chosen(message, request)]
    return {"trace_infos": found} if found else {}


def get_trace_artifact(message: m.GetTraceArtifact, request: Request) -> Response:
    """The spans of a trace as a file, or (``path``) a file that is attached to one."""
    trace_id, path = message.request_id, message.path
    if not trace_id:
        raise errors.BadRequest('Request must include the "request_id" query parameter.')
    if path:
        return _attachment(trace_id, path, request)
    stored = traces.find(trace_id, request.workspace)
    if stored is None:
        raise errors.ResourceDoesNotExist(f"Trace with ID {trace_id} is not found.")
    trace = traces.entity(stored)
    if _in_store(trace):
        lines = [line for _, line in _ordered(stored)]
        if len(lines) < completeness.spans_told(trace.trace_metadata):
            lines = list(map(content, _with_file(_parsed(lines), stored, trace)))
        data = ('{"spans":[' + ",".join(lines) + "]}").encode()
    else:
        kept = _file(trace, request.workspace, FILE)
        if kept is None:
            raise errors.NotFound(f"Trace data not found for path={FILE}")
        data = kept
    return fit(Response(200, data, content_type(FILE), _as_file(FILE)), request.headers)


def _attachment(trace_id: str, path: str, request: Request) -> Response:
    name = artifacts.safe_path(path)
    try:
        UUID(name)
    except ValueError:
        raise errors.InvalidParameterValue(
            f"Invalid attachment path: '{path}'. Attachment path must be a valid UUID."
        ) from None
    trace = traces.find(trace_id, request.workspace)
    if trace is None:
        raise errors.ResourceDoesNotExist(f"Trace with ID '{trace_id}' not found.")
    data = _file(traces.entity(trace), request.workspace, f"attachments/{name}")
    if data is None:
        raise errors.ResourceDoesNotExist(f"Attachment '{name}' not found for trace '{trace_id}'.")
    return fit(Response(200, data, content_type(name), _as_file(name)), request.headers)


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": attachment(name), "x-content-type-options": "nosniff"}


def _chosen(message: m.BatchGetTraces, request: Request) -> list[StoredTrace]:
    ids = list(dict.fromkeys(message.trace_ids))
    found = [trace for trace in traces.find_many(ids, request.workspace) if trace is not None]
    if message.has("experiment_ids"):
        owners = set(canonical_ids(message.experiment_ids))
        found = [trace for trace in found if trace.experiment.experiment_id in owners]
    return found


def _whole(trace: Trace, spans: Sequence[StoredSpan]) -> dict[str, Any]:
    found: dict[str, Any] = {"trace_info": responses.trace_info(trace)}
    if spans:
        found["spans"] = [span_responses.span(span) for span in spans]
    return found


def _in_store(trace: Trace) -> bool:
    return trace.tags.get(SPANS_LOCATION_TAG) == IN_STORE


def _spans(stored: StoredTrace, trace: Trace) -> list[StoredSpan] | None:
    """The spans of a trace in order; None if there are none to be found."""
    if not _in_store(trace):
        return _spans_of_file(stored, trace)
    found = _parsed([line for _, line in _ordered(stored)])
    if len(found) < completeness.spans_told(trace.trace_metadata):
        return _with_file(found, stored, trace)
    return found


def _with_file(spans: list[StoredSpan], stored: StoredTrace, trace: Trace) -> list[StoredSpan]:
    """With the spans that the client could not export, and sent as a file therefore."""
    known = {span["span_id"] for span in spans}
    sent = _spans_of_file(stored, trace) or []
    return sorted([*spans, *(span for span in sent if span["span_id"] not in known)], key=in_order)


def _spans_of_file(stored: StoredTrace, trace: Trace) -> list[StoredSpan] | None:
    data = _file(trace, stored.experiment.workspace, FILE)
    return None if data is None else stored_of_file(data)


def _parsed(lines: Sequence[str]) -> list[StoredSpan]:
    return list(map(json.loads, lines))


def _ordered(trace: StoredTrace) -> list[tuple[span_packs.Node, str]]:
    """Root spans first, then by start."""
    owner = Owner(trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id)
    found = span_packs.read(owner)
    return sorted(found, key=lambda span: (span[0][2] is not None, span[0][3], span[0][0]))


def _is_complete(trace: Trace, spans: list[StoredSpan] | None) -> bool:
    if not spans:
        return False
    return len(spans) >= completeness.spans_told(trace.trace_metadata)


def _file(trace: Trace, workspace: str, path: str) -> bytes | None:
    """A file of the trace; None if there is none, or it is kept elsewhere."""
    location = trace.tags.get(ARTIFACT_LOCATION_TAG)
    if location is None:
        return None
    try:
        return artifacts.store().get(artifacts.locate(location, workspace, path))
    except errors.InvalidParameterValue:
        return None
