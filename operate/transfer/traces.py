"""Transfers traces with spans and assessments from an MLflow server to the product's table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.entities.traces import Assessment, Trace
from mlcore.limits.traces import check_experiment, check_trace_id
from mlcore.redaction.redactor import Redactor
from mlcore.repos.experiments import experiments
from mlcore.repos.settings import redaction as redaction_setting
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import redaction, run_assessments, span_packs, traces
from mlcore.repos.traces.span_packs import Owner, Pack
from mlcore.repos.traces.traces import Info, StoredTrace, TraceChange
from mlcore.reserved_tags import ASSESSMENT_RUN
from mlcore.spans import span_redaction, trace_facts
from mlcore.spans.names import ARCHIVE_LOCATION_TAG, IN_STORE, SPANS_LOCATION_TAG
from mlcore.spans.stored_span import StoredSpan, content, node
from mlcore.spans.trace_state import ReportedState
from mlcore.wire.times import parse_duration, parse_point
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import API, SourceReader, target_location, values_by_key
from operate.transfer.transfer_item import Content, TransferItem

V3: Final = "api/3.0/mlflow/traces"
KINDS: Final = ("feedback", "expectation", "issue")


def listed(source: SourceReader, experiment_id: str) -> Iterator[Trace]:
    """Yields every trace of an experiment of the source server; none if its MLflow is older than
    2.14."""
    server = source.server
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    try:
        for fields in server.pages(
            "POST", f"{V3}/search", "traces", locations=[location], max_results=100
        ):
            yield entity(source, fields)
    except SourceFailed as failed:
        if not failed.unknown:
            raise
        yield from _listed_by_version_2(source, experiment_id)


def _listed_by_version_2(source: SourceReader, experiment_id: str) -> Iterator[Trace]:
    try:
        for fields in source.server.pages(
            "GET", f"{API}/traces", "traces", experiment_ids=experiment_id, max_results=100
        ):
            yield _trace_of_version_2(source, fields)
    except SourceFailed as failed:
        if not failed.unknown:
            raise


def location(trace: Trace) -> str:
    """Returns the location of the files of a trace; "" if the trace has none."""
    return trace.tags.get(reserved_tags.ARTIFACT_LOCATION, "")


def item(source: SourceReader, trace: Trace) -> TransferItem:
    def want() -> Content:
        return content_of(redacted_trace(source, trace), redacted_spans(source, trace))

    def have() -> Content | None:
        stored = traces.find(trace.trace_id, source.workspace)
        return None if stored is None else content_of(traces.entity(stored), _kept(stored))

    def write(want: Content, rows: Content | None) -> None:
        known = (rows or {}).get("spans", {})
        new = [span for span_id, span in want["spans"].items() if known.get(span_id) != span]
        packs = (
            span_packs.packs_of([span_packs.Span(content(span), node(span)) for span in new])
            if new
            else []
        )
        stored = traces.find(trace.trace_id, source.workspace)
        if stored is None:
            _create(
                redacted_trace(source, trace), source.workspace, list(want["spans"].values()), packs
            )
        else:
            _update(stored, redacted_trace(source, trace), packs)

    return TransferItem(
        "trace",
        trace.trace_id,
        want,
        have,
        write,
        outline=lambda: content_of(redacted_trace(source, trace), []),
        exists=lambda: traces.find(trace.trace_id, source.workspace) is not None,
    )


def redacted_trace(source: SourceReader, trace: Trace) -> Trace:
    """Returns the trace as the import writes it: after redaction by the rules in the table's
    setting ``redaction``."""
    rules = _rules(source, trace)
    if rules is None:
        return trace
    info = redaction.redacted_info(rules, _info(trace, [], None))
    return redaction.redacted_maps_of(rules, trace)._replace(
        client_request_id=info.client_request_id,
        request_preview=info.request_preview,
        response_preview=info.response_preview,
    )


def _rules(source: SourceReader, trace: Trace) -> Redactor | None:
    endpoint_id = trace.trace_metadata.get(reserved_tags.GATEWAY_ENDPOINT)
    return redaction_setting.redactor(source.workspace, trace.experiment_id, endpoint_id)


def redacted_spans(source: SourceReader, trace: Trace) -> list[StoredSpan]:
    """Returns the spans of a trace as the import writes them: after redaction by the rules in the
    table's setting ``redaction``."""
    spans = spans_of(source.server, trace)
    rules = _rules(source, trace)
    return spans if rules is None else [span_redaction.span(rules, span) for span in spans]


def content_of(trace: Trace, spans: Sequence[StoredSpan]) -> Content:
    """Returns those values of a trace and its spans that an import compares."""
    fields: dict[str, Any] = trace._asdict()
    del fields["prompts"]  # no server returns them
    fields["assessments"] = {
        assessment.assessment_id: assessment._asdict() for assessment in trace.assessments
    }
    fields["spans"] = {span["span_id"]: span for span in spans}
    return fields


def spans_of(server: Server, trace: Trace) -> list[StoredSpan]:
    """Returns the spans of a trace that the source server stores in its database; none if that
    server keeps the spans in a file."""
    if trace.tags.get(SPANS_LOCATION_TAG) != IN_STORE:
        return []
    fields = server.text("ajax-api/2.0/mlflow/get-trace-artifact", request_id=trace.trace_id)
    spans: list[StoredSpan] = json.loads(fields)["spans"]
    return spans


def _kept(trace: StoredTrace) -> list[StoredSpan]:
    owner = Owner(trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id)
    return [json.loads(line) for _, line in span_packs.read(owner)]


def _info(trace: Trace, spans: Sequence[StoredSpan], first_pack: str | None) -> Info:
    """Returns the trace's stored facts. The fields that the server returned are stored as reported,
    so that they are shown unchanged; facts of the spans are stored so that adding spans later
    updates the trace."""
    given = ReportedState(
        trace.request_time,
        trace.execution_duration,
        trace.state,
        trace.client_request_id,
        trace.request_preview,
        trace.response_preview,
    )
    fields = None
    if spans:
        made = trace_facts.facts_of_spans((span, {}) for span in spans)
        hidden = {*made.tag_texts(), *made.metadata_texts()}
        fields = made._replace(masked=tuple(sorted(hidden))).text
    return Info(*given, given=given.text, facts=fields, first_pack=first_pack)


def _maps(trace: Trace) -> dict[str, Mapping[str, str]]:
    assessed = {
        assessment.assessment_id: trace_assessments.text(assessment)
        for assessment in trace.assessments
    }
    return {"tags": trace.tags, "trace_metadata": trace.trace_metadata, "assessments": assessed}


def _arrivals(trace: Trace) -> dict[str, int]:
    """Returns the times by which a trace's assessments keep the order that the source server shows,
    by the assessments' ids."""
    ids = (assessment.assessment_id for assessment in trace.assessments)
    return trace_assessments.arriving(ids)


def _create(
    trace: Trace, workspace: str, spans: Sequence[StoredSpan], packs: Sequence[Pack]
) -> None:
    """Creates a trace together with its first pack of spans. The other packs are written before, so
    that a trace that exists is complete. Raises InvalidParameterValue if the trace's id cannot be
    the name of a folder."""
    check_trace_id(trace.trace_id)
    experiment = experiments.get(trace.experiment_id, workspace).experiment
    owner = Owner(experiment.workspace, trace.experiment_id, trace.trace_id)
    span_packs.put(owner, packs[1:])
    run_assessments.record(trace.trace_id, trace.assessments)
    traces.create(
        trace.trace_id,
        experiment,
        _info(trace, spans, packs[0].suffix if packs else None),
        _maps(trace),
        [span_packs.first_item(owner, pack) for pack in packs[:1]],
        arrivals=_arrivals(trace),
    )


def _update(stored: StoredTrace, trace: Trace, packs: list[Pack]) -> None:
    """Updates the table's trace and adds missing spans. Raises InvalidParameterValue if the trace
    with this id is in another experiment."""
    check_experiment(trace.trace_id, stored.experiment.experiment_id, trace.experiment_id)
    owner = Owner(stored.experiment.workspace, stored.experiment.experiment_id, stored.trace_id)
    first = stored.info.first_pack
    if packs and first is None and span_packs.put_first(owner, packs[0]):
        first = packs[0].suffix
    span_packs.put(owner, [pack for pack in packs if pack.suffix != first])
    kept = _kept(stored)

    def decide(current: StoredTrace) -> TraceChange:
        sets = {
            name: {
                key: text
                for key, text in wanted.items()
                if current.document.texts(name).get(key) != text
            }
            for name, wanted in _maps(trace).items()
        }
        info = _info(trace, kept, current.info.first_pack or first)
        return TraceChange(info, sets, arrivals=_arrivals(trace))

    run_assessments.record(trace.trace_id, trace.assessments)
    traces.write(stored, decide)


def entity(source: SourceReader, fields: Json) -> Trace:
    """Converts a trace in the REST API's JSON to this product's entity."""
    where = fields.get("trace_location", {}).get("mlflow_experiment", {}).get("experiment_id", "")
    duration = fields.get("execution_duration")
    return Trace(
        trace_id=fields["trace_id"],
        experiment_id=source.target_of(where),
        request_time=parse_point(fields["request_time"], "request_time"),
        execution_duration=(
            None if duration is None else parse_duration(duration, "execution_duration")
        ),
        state=fields.get("state", "STATE_UNSPECIFIED"),
        client_request_id=fields.get("client_request_id"),
        request_preview=fields.get("request_preview"),
        response_preview=fields.get("response_preview"),
        trace_metadata=dict(fields.get("trace_metadata", {})),
        tags=_located(fields.get("tags", {}), source.server.files),
        assessments=tuple(
            _assessment(fields["trace_id"], assessment)
            for assessment in fields.get("assessments", ())
        ),
    )


def _trace_of_version_2(source: SourceReader, fields: Json) -> Trace:
    status = fields.get("status", "")
    duration = fields.get("execution_time_ms")
    return Trace(
        trace_id=fields["request_id"],
        experiment_id=source.target_of(fields["experiment_id"]),
        request_time=int(fields.get("timestamp_ms", 0)),
        execution_duration=None if duration is None else int(duration),
        state="STATE_UNSPECIFIED" if status in ("", "TRACE_STATUS_UNSPECIFIED") else status,
        client_request_id=None,
        request_preview=None,
        response_preview=None,
        trace_metadata=values_by_key(fields.get("request_metadata")),
        tags=_located(values_by_key(fields.get("tags")), source.server.files),
    )


def _located(tags: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    kept = dict(tags)
    if reserved_tags.ARTIFACT_LOCATION in kept:
        kept[reserved_tags.ARTIFACT_LOCATION] = target_location(
            kept[reserved_tags.ARTIFACT_LOCATION], folder
        )
    if kept.get(SPANS_LOCATION_TAG) == reserved_tags.SPANS_ARCHIVED:
        # The server reads the spans from its archive; the target has an archive of its own.
        kept[SPANS_LOCATION_TAG] = IN_STORE
        kept.pop(ARCHIVE_LOCATION_TAG, None)
    return kept


def _assessment(trace_id: str, fields: Json) -> Assessment:
    kind = next((name for name in KINDS if name in fields), "feedback")
    value, error = fields.get(kind, {}), None
    if kind == "feedback":
        failed = value.get("error")
        names = ("error_code", "error_message", "stack_trace")
        error = {name: failed.get(name) for name in names} if failed else None
        value = value.get("value")
    elif kind == "expectation":
        serialized = value.get("serialized_value")
        value = json.loads(serialized["value"]) if serialized else value.get("value")
    metadata = fields.get("metadata") or None
    source = fields.get("source", {})
    return Assessment(
        assessment_id=fields["assessment_id"],
        trace_id=trace_id,
        name=fields.get("assessment_name", ""),
        kind=kind,
        value=value,
        error=error,
        source_type=source.get("source_type", "SOURCE_TYPE_UNSPECIFIED"),
        source_id=source.get("source_id"),
        create_time=parse_point(fields["create_time"], "create_time"),
        last_update_time=parse_point(fields["last_update_time"], "last_update_time"),
        run_id=metadata.get(ASSESSMENT_RUN) if metadata else None,
        span_id=fields.get("span_id"),
        rationale=fields.get("rationale"),
        metadata=metadata,
        overrides=fields.get("overrides"),
        valid=fields.get("valid", True),
    )
