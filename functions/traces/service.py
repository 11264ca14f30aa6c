"""The rules of traces: what is told about one, its tags, its deletion."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from mlcore import errors
from mlcore.db.table import table
from mlcore.entities.traces import Trace
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.limits.traces import (
    check_deletion,
    check_session,
    check_tag,
    check_trace_name,
)
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import pages as trace_pages
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import Change, StoredTrace
from mlcore.responses import traces as responses
from mlcore.settle import Conflict, settle
from mlcore.spans import facts, state, usage
from mlcore.spans.names import (
    ARCHIVAL_FAILURE_TAG,
    ARCHIVE_LOCATION_TAG,
    COST,
    COST_KEYS,
    FINALIZED,
    SESSION,
    SPANS_LOCATION_TAG,
    TOKEN_KEYS,
    TOKEN_USAGE,
    TRACE_NAME_TAG,
)
from mlcore.spans.state import Report, Texts
from mlcore.wire.times import parse_duration, parse_point
from traces import assessments
from traces import messages as m
from traces.ingest import completeness

_NO_TYPE: Final = "TRACE_LOCATION_TYPE_UNSPECIFIED"
WAITS: Final = (0, 0.1, 0.3)
"""Seconds to wait for spans that are on their way."""
_SYSTEM_TAGS: Final = (SPANS_LOCATION_TAG, ARCHIVE_LOCATION_TAG, ARCHIVAL_FAILURE_TAG)


def start_trace(message: m.StartTraceV3, request: Request) -> dict[str, Any]:
    """Two round trips: the trace with its experiment, then the write. A third where spans are on
    their way."""
    told = message.trace.trace_info if message.trace else None
    if told is None:
        told = m.TraceInfo()
    where = told.trace_location or m.TraceLocation()
    location = where.mlflow_experiment
    if location is None or not told.trace_id:
        raise errors.InvalidParameterValue(
            "A trace needs an id and the experiment that it is in: "
            "'trace_id' or 'trace_location.mlflow_experiment' is missing."
        )
    if where.type != "MLFLOW_EXPERIMENT":
        raise errors.InvalidParameterValue(
            f"Trace location type TraceLocationType.{where.type or _NO_TYPE} does not match "
            "the provided location "
            f"MlflowExperimentLocation(experiment_id={location.experiment_id!r})."
        )
    report = Report(
        parse_point(told.request_time, "request_time") if told.request_time else 0,
        (
            parse_duration(told.execution_duration, "execution_duration")
            if told.has("execution_duration")
            else None
        ),
        told.state or "STATE_UNSPECIFIED",
        told.client_request_id if told.has("client_request_id") else None,
        told.request_preview if told.has("request_preview") else None,
        told.response_preview if told.has("response_preview") else None,
    )
    metadata = {**kept_metadata(told.trace_metadata), FINALIZED: "true"}
    made = [assessments.of_message(one, told.trace_id) for one in told.assessments]
    texts = {one.assessment_id: trace_assessments.text(one) for one in made}
    check_trace_name(told.tags.get(TRACE_NAME_TAG))
    owner = Owner(request.workspace, location.experiment_id, told.trace_id)
    trace: Trace
    calls: list[Callable[[], Any]] = [
        lambda: tell(
            owner.trace_id, owner.experiment_id, report, told.tags, metadata, texts, owner.workspace
        )
    ]
    wanted = completeness.spans_told(metadata)
    if wanted and completeness.fits_a_file(metadata):
        calls.append(lambda: span_packs.count(owner))
    trace, *counted = table.parallel(calls)
    if counted and SPANS_LOCATION_TAG in trace.tags and not _all_here(trace, wanted, counted[0]):
        # Spans are lost, or late: a client that does not see this tag sends all of them as a file.
        trace.tags.pop(SPANS_LOCATION_TAG)
    return {"trace": {"trace_info": responses.trace_info(trace)}}


def _all_here(trace: Trace, expected: int, counted: int) -> bool:
    owner = Owner("", trace.experiment_id, trace.trace_id)
    for wait in WAITS:
        if counted >= expected:
            break
        time.sleep(wait)
        counted = span_packs.count(owner)
    return counted >= expected


def tell(
    trace_id: str,
    experiment: str,
    report: Report,
    tags: Texts,
    metadata: Texts,
    assessed: Texts,
    workspace: str,
) -> Trace:
    """Makes or completes a trace; what it shows then."""

    def attempt() -> Trace:
        owner, trace = traces.find_or_place(trace_id, experiment_id(experiment), workspace)
        if owner is None:
            raise experiments.missing(experiment)
        experiments.check_active(owner)
        located = {**tags, **state.artifact_location(owner, trace_id)}
        if trace is None:
            maps = {"tags": located, "trace_metadata": metadata, "assessments": assessed}
            shown = state.info(report, None, None)
            if not traces.create(trace_id, owner, shown, maps):
                raise Conflict
            return traces.shown(trace_id, owner, shown, maps)

        def add(current: StoredTrace) -> Change:
            change = state.with_report(current, _merged(current, report), located, metadata)
            return change._replace(sets={**change.sets, "assessments": assessed})

        written = traces.write(trace, add)
        if written is None:
            raise Conflict
        return traces.after(written, add(written))

    return settle("trace", attempt)


def kept_metadata(metadata: Texts) -> dict[str, str]:
    """Metadata as MLflow keeps it: of token usage and cost the numbers that it knows."""
    kept = dict(metadata)
    if SESSION in kept:
        check_session(kept[SESSION])
    for key, names, convert in (
        (TOKEN_USAGE, TOKEN_KEYS, usage.token_count),
        (COST, COST_KEYS, usage.finite),
    ):
        amounts = usage.amounts_of(kept.pop(key, None), names, convert)
        if amounts:
            kept[key] = json.dumps(amounts)
    return kept


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
    """By ids, or all of up to a time. Those of another experiment stay."""
    latest = message.max_timestamp_millis if message.has("max_timestamp_millis") else None
    most = message.max_traces if message.has("max_traces") else None
    check_deletion(latest, most, message.request_ids)
    (owner,) = canonical_ids([message.experiment_id])
    if latest is None:
        ids = list(dict.fromkeys(message.request_ids))
        found = traces.find_many(ids, request.workspace)
        chosen = [
            trace
            for trace in found
            if trace is not None and trace.experiment.experiment_id == owner
        ]
    else:
        experiment = experiments.find(owner, request.workspace)
        if experiment is None:
            return {"traces_deleted": 0}
        chosen = trace_pages.oldest(experiment, latest, most)
    traces.delete(chosen)
    return {"traces_deleted": len(chosen)}


def missing(trace_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Trace with ID '{trace_id}' not found.")


def _get(trace_id: str, request: Request) -> StoredTrace:
    trace = traces.find(trace_id, request.workspace)
    if trace is None:
        raise missing(trace_id)
    return trace


def _merged(current: StoredTrace, report: Report) -> Report:
    """A preview that is not told again stays."""
    before = state.report_of(current.info)
    if before is None:
        return report
    return report._replace(
        request_preview=report.request_preview or before.request_preview,
        response_preview=report.response_preview or before.response_preview,
    )


def _set_tag(trace_id: str, key: str, value: str, request: Request) -> None:
    _check_mutable(key, "set")
    tag = check_tag(key, value)
    if tag.key == TRACE_NAME_TAG:
        check_trace_name(tag.value)

    def put(current: StoredTrace) -> Change | None:
        if current.document.texts("tags").get(tag.key) == tag.value:
            return None
        return _with_tag(current, tag.key)._replace(sets={"tags": {tag.key: tag.value}})

    trace = traces.find(trace_id, request.workspace)
    if trace is None or traces.write(trace, put) is None:
        failure = errors.ResourceDoesNotExist if workspaces_enabled() else errors.BadRequest
        raise failure(f"Trace with ID '{trace_id}' not found.")


def _delete_tag(trace_id: str, key: str, request: Request) -> None:
    if key != ARCHIVAL_FAILURE_TAG:
        _check_mutable(key, "deleted")
    absent = errors.ResourceDoesNotExist(
        f"No trace tag with key '{key}' for trace with ID '{trace_id}'"
    )

    def remove(current: StoredTrace) -> Change:
        if key not in current.document.texts("tags"):
            raise absent
        return _with_tag(current, key)._replace(removals=[("tags", key)])

    trace = traces.find(trace_id, request.workspace)
    if trace is None:
        raise missing(trace_id) if key == TRACE_NAME_TAG else absent
    if traces.write(trace, remove) is None:
        raise absent


def _with_tag(current: StoredTrace, key: str) -> Change:
    """Whatever the spans tell of this tag from now on, it counts as it is set here."""
    told = facts.parse(current.info.facts)
    info = current.info
    if told:
        info = info._replace(facts=state.masked(told, {key: ""}, {}).text)
    return Change(info, {})


def _check_mutable(key: str, operation: str) -> None:
    if key in _SYSTEM_TAGS:
        raise errors.InvalidParameterValue(
            f"Tag '{key}' is immutable and cannot be {operation} on a trace."
        )
