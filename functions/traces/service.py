"""Creates, completes and deletes traces, reads their info (not their spans), and sets and deletes
their tags."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from mlcore import errors, reserved_tags
from mlcore.db.table import table
from mlcore.entities.traces import Assessment, Trace
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.limits.traces import (
    check_deletion,
    check_session,
    check_tag,
    check_trace_id,
    check_trace_name,
)
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import (
    archival,
    redaction,
    row_removal_requests,
    run_assessments,
    span_packs,
    traces,
)
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.responses import traces as responses
from mlcore.spans import trace_facts, trace_state, trace_totals
from mlcore.spans.names import (
    ARCHIVAL_FAILURE_TAG,
    COST_KEYS,
    FINALIZED,
    SPANS_LOCATION_TAG,
    SYSTEM_TAGS,
    TOKEN_KEYS,
)
from mlcore.spans.trace_state import ReportedState, Texts
from mlcore.wire.times import parse_duration, parse_point
from traces import assessments
from traces import messages as m
from traces.ingest import size_stats

_NO_TYPE: Final = "TRACE_LOCATION_TYPE_UNSPECIFIED"
WAIT_SECONDS: Final = (0, 0.1, 0.3)
"""Pauses in seconds before counting a trace's spans again, as late ones may still arrive."""


def start_trace(message: m.StartTraceV3, request: Request) -> dict[str, Any]:
    """Creates or completes a trace. Usually takes two round trips: a read of the trace and its
    experiment, then the write; more if a run assessed the trace or while spans still arrive."""
    info = message.trace.trace_info if message.trace else None
    if info is None:
        info = m.TraceInfo()
    trace_location = info.trace_location or m.TraceLocation()
    location = trace_location.mlflow_experiment
    if location is None or not info.trace_id:
        raise errors.InvalidParameterValue(
            "A trace needs an id and the experiment that it is in: "
            "'trace_id' or 'trace_location.mlflow_experiment' is missing."
        )
    if trace_location.type != "MLFLOW_EXPERIMENT":
        raise errors.InvalidParameterValue(
            f"Trace location type TraceLocationType.{trace_location.type or _NO_TYPE} does not "
            "match the provided location "
            f"MlflowExperimentLocation(experiment_id={location.experiment_id!r})."
        )
    report = ReportedState(
        parse_point(info.request_time, "request_time") if info.request_time else 0,
        (
            parse_duration(info.execution_duration, "execution_duration")
            if info.has("execution_duration")
            else None
        ),
        info.state or "STATE_UNSPECIFIED",
        info.client_request_id if info.has("client_request_id") else None,
        _without_nul(info.request_preview) if info.has("request_preview") else None,
        _without_nul(info.response_preview) if info.has("response_preview") else None,
    )
    metadata = {**normalized_metadata(info.trace_metadata), FINALIZED: "true"}
    new_assessments = [
        assessments.from_message(assessment, info.trace_id) for assessment in info.assessments
    ]
    tags = accepted_tags(info.tags)
    owner = Owner(request.workspace, location.experiment_id, info.trace_id)
    trace: Trace
    calls: list[Callable[[], Any]] = [
        lambda: create_or_complete(
            owner.trace_id,
            owner.experiment_id,
            report,
            tags,
            metadata,
            new_assessments,
            owner.workspace,
        )
    ]
    expected = size_stats.span_count(metadata)
    if expected and size_stats.fits_a_file(metadata):
        calls.append(lambda: span_packs.count(owner))
    trace, *counts = table.parallel(calls)
    if (
        counts
        and SPANS_LOCATION_TAG in trace.tags
        and not _has_all_spans(trace, expected, counts[0])
    ):
        # Spans are lost or late. A client that does not see this tag sends all spans as a file.
        trace.tags.pop(SPANS_LOCATION_TAG)
    return {"trace": {"trace_info": responses.trace_info(trace)}}


def _has_all_spans(trace: Trace, expected: int, counted: int) -> bool:
    """Returns whether at least ``expected`` spans are stored. While some are missing, waits and
    counts again, a few times."""
    owner = Owner("", trace.experiment_id, trace.trace_id)
    for wait in WAIT_SECONDS:
        if counted >= expected:
            break
        time.sleep(wait)
        counted = span_packs.count(owner)
    return counted >= expected


def create_or_complete(
    trace_id: str,
    experiment: str,
    report: ReportedState,
    tags: Texts,
    metadata: Texts,
    new_assessments: Sequence[Assessment],
    workspace: str,
) -> Trace:
    """Creates a trace or adds to an existing one, and returns it.

    Args:
        experiment: the id of the experiment in which a new trace is created.
        new_assessments: as :func:`.assessments.from_message` returns them.

    Raises:
        ResourceDoesNotExist: the experiment does not exist.
        InvalidParameterValue: the experiment is deleted, the trace is in another experiment, or its
            id cannot be the name of a folder.
        InvalidState: the trace is archived.
    """

    def attempt() -> Trace:
        owner, trace = traces.find_or_place(trace_id, experiment_id(experiment), workspace)
        if owner is None:
            raise experiments.missing(experiment)
        experiments.check_active(owner)
        check_trace_id(trace_id)
        located = {**tags, **trace_state.artifact_location(owner, trace_id)}
        endpoint_id = metadata.get(reserved_tags.GATEWAY_ENDPOINT)
        rules = (
            redaction.redactor(owner, endpoint_id)
            if trace is None
            else redaction.redactor_of(trace)
        )
        assessments_by_id = assessments.stored_texts(rules, new_assessments)
        arrivals = trace_assessments.arriving(assessments_by_id)
        run_assessments.record(trace_id, new_assessments)
        if trace is None:
            maps = {"tags": located, "trace_metadata": metadata, "assessments": assessments_by_id}
            info = trace_state.info(report, None, None)
            created = traces.create(trace_id, owner, info, maps, arrivals=arrivals)
            if created is None:
                raise WriteConflict
            return created

        def add(current: StoredTrace) -> TraceChange:
            check_not_archived(current)
            change = trace_state.with_report(
                current, _with_known_previews(current, report), located, metadata
            )
            sets = {**change.sets, "assessments": assessments_by_id}
            return change._replace(sets=sets, arrivals=arrivals)

        written = traces.write(trace, add)
        if written is None:
            raise WriteConflict
        return traces.after(written, add(written))

    return retry_on_conflict("trace", attempt)


def check_not_archived(trace: StoredTrace) -> None:
    """Raises InvalidState if the trace is archived: what a client reports about the trace itself no
    longer changes it. Tags, assessments and links still do."""
    if archival.is_archived(trace):
        raise errors.InvalidState(
            f"Cannot update traces that are no longer DB-backed: '{trace.trace_id}'."
        )


def accepted_tags(tags: Texts) -> dict[str, str]:
    """Returns those tags of a trace in a request that a client may set; the server's own are
    dropped. Raises InvalidParameterValue if the trace's name, which is a tag, is too long."""
    check_trace_name(tags.get(reserved_tags.TRACE_NAME))
    return {key: text for key, text in tags.items() if key not in SYSTEM_TAGS}


def normalized_metadata(metadata: Texts) -> dict[str, str]:
    """Returns a trace's metadata in the form to store. Of token usage and cost it keeps only the
    numbers that MLflow knows. Raises InvalidParameterValue if the session's id is too long."""
    normalized = dict(metadata)
    if reserved_tags.TRACE_SESSION in normalized:
        check_session(normalized[reserved_tags.TRACE_SESSION])
    for key, names, convert in (
        (reserved_tags.TRACE_TOKEN_USAGE, TOKEN_KEYS, trace_totals.token_count),
        (reserved_tags.TRACE_COST, COST_KEYS, trace_totals.finite_number),
    ):
        amounts = trace_totals.amounts_of(normalized.pop(key, None), names, convert)
        if amounts:
            normalized[key] = json.dumps(amounts)
    return normalized


def get_trace_info(message: m.GetTraceInfoV3, request: Request) -> dict[str, Any]:
    trace = _get(message.trace_id, request)
    return {"trace": {"trace_info": responses.trace_info(traces.entity(trace))}}


def set_tag(message: m.SetTraceTag, request: Request) -> dict[str, Any]:
    _set_tag(message.request_id, message.key, message.value, request)
    return {}


def set_tag_v3(message: m.SetTraceTagV3, request: Request) -> dict[str, Any]:
    _set_tag(message.trace_id, message.key, message.value, request)
    return {}


def delete_tag(message: m.DeleteTraceTag, request: Request) -> dict[str, Any]:
    _delete_tag(message.request_id, message.key, request)
    return {}


def delete_tag_v3(message: m.DeleteTraceTagV3, request: Request) -> dict[str, Any]:
    _delete_tag(message.trace_id, message.key, request)
    return {}


def delete_traces(message: m.DeleteTraces, request: Request) -> dict[str, Any]:
    """Deletes an experiment's traces: those with the given ids, or the oldest up to a time. Ids of
    traces in another experiment are ignored. For ids without a trace, also asks for the removal of
    rows in the system tables: the trace may have expired in the table only."""
    latest = message.max_timestamp_millis if message.has("max_timestamp_millis") else None
    limit = message.max_traces if message.has("max_traces") else None
    check_deletion(latest, limit, message.request_ids)
    (owner_id,) = canonical_ids([message.experiment_id])
    if latest is None:
        ids = list(dict.fromkeys(message.request_ids))
        to_delete = [
            trace
            for trace in traces.find_many(ids, request.workspace)
            if trace is not None and trace.experiment.experiment_id == owner_id
        ]
        if len(to_delete) < len(ids):
            _remove_rows(owner_id, set(ids) - {trace.trace_id for trace in to_delete}, request)
    else:
        experiment = experiments.find(owner_id, request.workspace)
        if experiment is None:
            return {"traces_deleted": 0}
        to_delete = trace_pages.oldest(experiment, latest, limit)
    traces.delete(to_delete)
    return {"traces_deleted": len(to_delete)}


def _remove_rows(experiment_id: str, trace_ids: Collection[str], request: Request) -> None:
    """Asks for the removal of the rows of traces that the table lacks, if the experiment is in the
    workspace of the request."""
    experiment = experiments.find(experiment_id, request.workspace)
    if experiment is not None:
        row_removal_requests.request(experiment, sorted(trace_ids))


def missing(trace_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Trace with ID '{trace_id}' not found.")


def _get(trace_id: str, request: Request) -> StoredTrace:
    trace = traces.find(trace_id, request.workspace)
    if trace is None:
        raise missing(trace_id)
    return trace


def _without_nul(preview: str) -> str:
    return preview.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _with_known_previews(current: StoredTrace, report: ReportedState) -> ReportedState:
    """Fills in the previews that a report omits from the trace's former report."""
    before = trace_state.report_of(current.info)
    if before is None:
        return report
    request, response = report.request_preview, report.response_preview
    return report._replace(
        request_preview=before.request_preview if request is None else request,
        response_preview=before.response_preview if response is None else response,
    )


def _set_tag(trace_id: str, key: str, value: str, request: Request) -> None:
    _check_mutable(key, "set")
    tag = check_tag(key, value)
    if tag.key == reserved_tags.TRACE_NAME:
        check_trace_name(tag.value)

    def put(current: StoredTrace) -> TraceChange | None:
        if current.document.texts("tags").get(tag.key) == tag.value:
            return None
        return _with_tag(current, tag.key)._replace(sets={"tags": {tag.key: tag.value}})

    trace = traces.find(trace_id, request.workspace)
    if trace is None or traces.write(trace, put) is None:
        if tag.key == reserved_tags.TRACE_NAME or workspaces_enabled():
            raise missing(trace_id)
        raise errors.BadRequest(f"Trace with ID '{trace_id}' not found.")


def _delete_tag(trace_id: str, key: str, request: Request) -> None:
    if key != ARCHIVAL_FAILURE_TAG:
        _check_mutable(key, "deleted")
    absent = errors.ResourceDoesNotExist(
        f"No trace tag with key '{key}' for trace with ID '{trace_id}'"
    )

    def remove(current: StoredTrace) -> TraceChange:
        if key not in current.document.texts("tags"):
            raise absent
        return _with_tag(current, key)._replace(removals=[("tags", key)])

    trace = traces.find(trace_id, request.workspace)
    if trace is None:
        if key == reserved_tags.TRACE_NAME or workspaces_enabled():
            raise missing(trace_id)
        raise absent
    if traces.write(trace, remove) is None:
        raise absent


def _with_tag(current: StoredTrace, key: str) -> TraceChange:
    """Marks the tag as set by a request: values of this tag in spans that arrive later are
    ignored."""
    facts_of_spans = trace_facts.parse(current.info.facts)
    info = current.info
    if facts_of_spans:
        info = info._replace(facts=trace_state.masked(facts_of_spans, {key: ""}, {}).text)
    return TraceChange(info, {})


def _check_mutable(key: str, operation: str) -> None:
    if key in SYSTEM_TAGS:
        raise errors.InvalidParameterValue(
            f"Tag '{key}' is immutable and cannot be {operation} on a trace."
        )
