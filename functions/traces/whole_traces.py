"""Reads whole traces with their spans: from the packs in the table, or from the file
``traces.json`` in which older clients store spans. Also reads trace infos in batches, and files
that are attached to traces."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from mlcore import artifacts, errors, reserved_tags
from mlcore.artifacts.file_headers import attachment, content_type
from mlcore.db.table import table
from mlcore.entities.traces import Trace
from mlcore.http import Request, Response
from mlcore.http.compression import fit
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import StoredTrace
from mlcore.responses import traces as responses
from mlcore.spans.names import READABLE, SPANS_LOCATION_TAG
from mlcore.spans.stored_span import INTERNAL, StoredSpan, content
from traces import messages as m
from traces import span_responses
from traces.ingest import size_stats, trace_files

FILE: Final = "traces.json"
WAIT_SECONDS: Final = (0.5, 1.0)
"""Pauses in seconds before reading an incomplete trace again, as late spans may still arrive."""


def get_trace(message: m.GetTrace, request: Request) -> dict[str, Any]:
    """Returns a trace with its spans. Takes two round trips: the trace, then its spans; one more to
    locate a trace that this process has not read before. If spans are missing and ``allow_partial``
    is not set, reads both again after 0.5 s and 1 s more. Raises ResourceDoesNotExist for a missing
    trace, and if spans are still missing then."""
    for wait in (*WAIT_SECONDS, None):
        stored = traces.find(message.trace_id, request.workspace)
        if stored is None:
            raise errors.ResourceDoesNotExist(f"Trace with ID {message.trace_id} is not found.")
        trace = traces.entity(stored)
        spans = _spans(stored, trace)
        if message.allow_partial or _is_complete(trace, spans):
            return {"trace": _with_spans(trace, spans or [])}
        if wait is not None:
            time.sleep(wait)
    raise errors.ResourceDoesNotExist(
        f"Trace with ID {message.trace_id} is not fully exported yet, please try again later."
    )


def batch_get_traces(message: m.BatchGetTraces, request: Request) -> dict[str, Any]:
    """Returns the requested traces that are complete, with their spans."""
    stored_traces = _requested(message, request)
    entities = list(map(traces.entity, stored_traces))
    reads = [
        partial(_spans, stored, trace)
        for stored, trace in zip(stored_traces, entities, strict=True)
    ]
    whole = [
        _with_spans(trace, spans or [])
        for trace, spans in zip(entities, table.parallel(reads), strict=True)
        if _is_complete(trace, spans)
    ]
    return {"traces": whole} if whole else {}


def batch_get_trace_infos(message: m.BatchGetTraceInfos, request: Request) -> dict[str, Any]:
    infos = [responses.trace_info(traces.entity(trace)) for trace in _requested(message, request)]
    return {"trace_infos": infos} if infos else {}


def get_trace_artifact(message: m.GetTraceArtifact, request: Request) -> Response:
    """Returns the spans of a trace as a file, or with ``path`` a file attached to a span."""
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
        lines = [_with_kind(line) for _, line in _span_lines(stored)]
        if len(lines) < size_stats.span_count(trace.trace_metadata):
            lines = list(map(content, _with_spans_of_file(_parsed(lines), stored, trace)))
        data = ('{"spans":[' + ",".join(lines) + "]}").encode()
    else:
        file = _file(trace, request.workspace, FILE)
        if file is None:
            raise errors.NotFound(f"Trace data not found for path={FILE}")
        data = file
    return fit(Response(200, data, content_type(FILE), _download_headers(FILE)), request.headers)


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
    return fit(Response(200, data, content_type(name), _download_headers(name)), request.headers)


def _download_headers(name: str) -> dict[str, str]:
    return {"content-disposition": attachment(name), "x-content-type-options": "nosniff"}


def _requested(message: m.BatchGetTraces, request: Request) -> list[StoredTrace]:
    """Reads the traces that a request names, and drops those outside its experiments and those that
    the caller may not read."""
    ids = list(dict.fromkeys(message.trace_ids))
    stored = [trace for trace in traces.find_many(ids, request.workspace) if trace is not None]
    if message.has("experiment_ids"):
        owners = set(canonical_ids(message.experiment_ids))
        stored = [trace for trace in stored if trace.experiment.experiment_id in owners]
    if request.access is None or request.access.is_admin:
        return stored
    from mlcore.policies.traces import readable  # noqa: PLC0415 -- needed only with logins

    return readable(request.access, stored)


def _with_spans(trace: Trace, spans: Sequence[StoredSpan]) -> dict[str, Any]:
    answer: dict[str, Any] = {"trace_info": responses.trace_info(trace)}
    if spans:
        answer["spans"] = [span_responses.span(span) for span in spans]
    return answer


def _in_store(trace: Trace) -> bool:
    return trace.tags.get(SPANS_LOCATION_TAG) in READABLE


def _spans(stored: StoredTrace, trace: Trace) -> list[StoredSpan] | None:
    """Returns the spans of a trace, root spans first, then by start; None if they are neither in
    the table nor in a file."""
    if not _in_store(trace):
        return _spans_of_file(stored, trace)
    spans = _parsed([line for _, line in _span_lines(stored)])
    if len(spans) < size_stats.span_count(trace.trace_metadata):
        return _with_spans_of_file(spans, stored, trace)
    return spans


def _with_spans_of_file(
    spans: list[StoredSpan], stored: StoredTrace, trace: Trace
) -> list[StoredSpan]:
    """Adds the spans that the client could not export and sent as a file instead."""
    stored_ids = {span["span_id"] for span in spans}
    in_file = _spans_of_file(stored, trace) or []
    missing = [span for span in in_file if span["span_id"] not in stored_ids]
    return sorted([*spans, *missing], key=trace_files.sort_key)


def _spans_of_file(stored: StoredTrace, trace: Trace) -> list[StoredSpan] | None:
    data = _file(trace, stored.experiment.workspace, FILE)
    return None if data is None else trace_files.parse(data)


def _parsed(lines: Sequence[str]) -> list[StoredSpan]:
    return list(map(json.loads, lines))


def _span_lines(trace: StoredTrace) -> list[tuple[span_packs.Node, str]]:
    """Reads the spans in the table, each as its node and its JSON text: root spans first, then by
    start."""
    owner = Owner(trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id)
    spans = span_packs.read(owner)
    return sorted(spans, key=lambda span: (span[0][2] is not None, span[0][3], span[0][0]))


def _with_kind(line: str) -> str:
    """Returns a span's JSON text, with the kind "internal" if version 0.1.0 stored the span without
    a kind."""
    if '"kind": "SPAN_KIND_' in line:
        return line
    span = json.loads(line)
    return content({**span, "kind": span.get("kind") or INTERNAL})


def _is_complete(trace: Trace, spans: list[StoredSpan] | None) -> bool:
    """Whether ``spans`` has all spans of a trace. An archived trace counts as complete, because it
    gets no further spans."""
    if trace.tags.get(SPANS_LOCATION_TAG) == reserved_tags.SPANS_ARCHIVED:
        return True
    if not spans:
        return False
    return len(spans) >= size_stats.span_count(trace.trace_metadata)


def _file(trace: Trace, workspace: str, path: str) -> bytes | None:
    """Reads a file of the trace. Returns None if it does not exist, or if the trace's files are
    outside this server's store."""
    location = trace.tags.get(reserved_tags.ARTIFACT_LOCATION)
    if location is None:
        return None
    try:
        return artifacts.store().get(artifacts.locate(location, workspace, path))
    except errors.InvalidParameterValue:
        return None
