"""Redacts what a trace's item stores besides spans: the client's request id, previews, tags,
metadata and assessments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mlcore.entities.experiments import Experiment
from mlcore.entities.traces import Assessment, Trace
from mlcore.repos.settings import redaction
from mlcore.repos.traces import assessments
from mlcore.reserved_tags import GATEWAY_ENDPOINT, SPAN_INPUTS, SPAN_OUTPUTS, TRACE_LOCATIONS

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor
    from mlcore.repos.traces.traces import Info, StoredTrace, TraceChange

INPUTS: Final = ("inputs", SPAN_INPUTS)
OUTPUTS: Final = ("outputs", SPAN_OUTPUTS)
TAGS: Final = "tags"
METADATA: Final = "metadata"
_REQUEST_ID: Final = "client_request_id"
_PREVIEWS: Final = ("request_preview", "response_preview")
_MAPS: Final = {"tags": TAGS, "trace_metadata": METADATA}
Texts = Mapping[str, str]
Maps = Mapping[str, Texts]
"""The entries of a trace's maps, by map and key."""


def redactor(experiment: Experiment, endpoint_id: str | None = None) -> Redactor | None:
    """Returns the redactor for the traces of an experiment or, with ``endpoint_id``, for the trace
    of a call of this gateway endpoint; None if no rule applies."""
    return redaction.redactor(experiment.workspace, experiment.experiment_id, endpoint_id)


def redactor_of(trace: StoredTrace) -> Redactor | None:
    """Returns the redactor for a stored trace; None if no rule applies to it."""
    if not redaction.has_rules():
        return None
    return redactor(trace.experiment, endpoint_of(trace))


def endpoint_of(trace: StoredTrace) -> str | None:
    """Returns the id of the gateway endpoint whose call a stored trace records; None for any other
    trace."""
    return trace.document.texts("trace_metadata").get(GATEWAY_ENDPOINT)


def redacted_parts(experiment: Experiment, info: Info, maps: Maps) -> tuple[Info, Maps]:
    """Returns what a new trace stores besides spans, redacted: its attributes (``info``) and the
    entries of its maps, such as tags. Raises TemporarilyUnavailable if the rules of redaction
    cannot be read."""
    rules = redactor(experiment, maps.get("trace_metadata", {}).get(GATEWAY_ENDPOINT))
    if rules is None:
        return info, maps
    return redacted_info(rules, info), redacted_maps(rules, maps)


def redacted_change(trace: StoredTrace, change: TraceChange) -> TraceChange:
    """Returns a change of a trace, redacted. Raises TemporarilyUnavailable if the rules of
    redaction cannot be read."""
    if not redaction.has_rules():
        return change
    sets = _without_new_endpoint(trace, change.sets)
    rules = redactor_of(trace)
    if rules is None:
        return change._replace(sets=sets)
    info = change.info
    return change._replace(
        info=info if info == trace.info else redacted_info(rules, info),
        sets=redacted_maps(rules, sets),
    )


def _without_new_endpoint(trace: StoredTrace, sets: Maps) -> Maps:
    """Returns the entries to set without a change of the trace's gateway endpoint: a user who may
    edit a trace must not be able to avoid the redaction rules of its endpoint."""
    metadata = sets.get("trace_metadata", {})
    if GATEWAY_ENDPOINT not in metadata:
        return sets
    stored = endpoint_of(trace)
    if stored is None:
        return sets
    return {**sets, "trace_metadata": {**metadata, GATEWAY_ENDPOINT: stored}}


def redacted_info(rules: Redactor, info: Info) -> Info:
    """Returns a trace's info, redacted. Its field ``facts`` is left as it is: it is computed from
    spans, which are redacted before."""
    report: dict[str, Any] = {} if info.given is None else json.loads(info.given)
    before = dict(report)
    if rules.is_content_free:
        from mlcore.redaction import content_free  # noqa: PLC0415 -- only where rules apply

        request_id = content_free.word(info.client_request_id)
        info = info._replace(
            client_request_id=request_id, request_preview=None, response_preview=None
        )
        report = {key: item for key, item in report.items() if key not in _PREVIEWS}
        if _REQUEST_ID in report:
            report[_REQUEST_ID] = content_free.word(report[_REQUEST_ID])
    request_id = info.client_request_id
    if request_id is not None:
        request_id = rules.text(request_id, _REQUEST_ID)
    if report.get(_REQUEST_ID) is not None:
        report[_REQUEST_ID] = rules.text(report[_REQUEST_ID], _REQUEST_ID)
    redacted = info._replace(
        client_request_id=request_id,
        request_preview=_preview(rules, report, "request_preview", info.request_preview, INPUTS),
        response_preview=_preview(
            rules, report, "response_preview", info.response_preview, OUTPUTS
        ),
    )
    if report == before:
        return redacted
    given = json.dumps(report, ensure_ascii=False, separators=(",", ":"))
    return redacted._replace(given=given)


def _preview(
    rules: Redactor, report: dict[str, Any], name: str, shown: str | None, paths: tuple[str, ...]
) -> str | None:
    """Returns the redacted preview of a trace's request or response.

    Args:
        report: the data that a client sent about the trace. A preview in it is redacted in place
            and returned.
        name: the preview's field in ``report``.
        shown: the preview made from the spans, which is used if ``report`` has none.
        paths: the fields that the text of the client's preview comes from, for rules on fields.
    """
    preview = report.get(name)
    if preview is not None:
        report[name] = rules.preview(preview, *paths)
        return str(report[name])
    return None if shown is None else rules.text(shown)


def redacted_maps(rules: Redactor, maps: Maps) -> dict[str, Texts]:
    """Returns the entries of a trace's maps (tags, metadata, …), redacted, by map and key."""
    return {name: _redacted_map(rules, name, texts) for name, texts in maps.items()}


def redacted_maps_of(rules: Redactor, trace: Trace) -> Trace:
    """Returns a trace with redacted tags, metadata and assessments."""
    return trace._replace(
        tags=dict(_redacted_map(rules, "tags", trace.tags)),
        trace_metadata=dict(_redacted_map(rules, "trace_metadata", trace.trace_metadata)),
        assessments=tuple(
            redacted_assessment(rules, assessment) for assessment in trace.assessments
        ),
    )


def redacted_assessment(rules: Redactor | None, assessment: Assessment) -> Assessment:
    """Returns a redacted assessment, unchanged if ``rules`` is None. Times and ids stay, except the
    id of the source."""
    if rules is None:
        return assessment
    if rules.is_content_free:
        assessment = _without_content(assessment)
    error, metadata = assessment.error, assessment.metadata
    rationale, source = assessment.rationale, assessment.source_id
    return assessment._replace(
        name=rules.text(assessment.name, "assessments.name"),
        value=rules.value(assessment.value, "assessments.value"),
        error=error and rules.value(error, "assessments.error"),
        rationale=rationale and rules.text(rationale, "assessments.rationale"),
        source_id=source and rules.text(source, "assessments.source_id"),
        metadata=metadata and rules.value(metadata, "assessments.metadata"),
    )


def _without_content(assessment: Assessment) -> Assessment:
    """Returns an assessment without its rationale, messages and texts: a value that is no number,
    no boolean and no word such as ``yes`` is replaced."""
    from mlcore.redaction import content_free  # noqa: PLC0415 -- only where rules apply
    from mlcore.redaction.redactor import WITHOUT_CONTENT  # noqa: PLC0415

    value, error = assessment.value, assessment.error
    if value is not None and content_free.feedback_value(value) is None:
        value = {"issue_name": WITHOUT_CONTENT} if assessment.kind == "issue" else WITHOUT_CONTENT
    return assessment._replace(
        value=value,
        error=error
        and {
            **dict.fromkeys(error),
            "error_code": content_free.word(error.get("error_code")),
        },
        rationale=None,
        source_id=content_free.word(assessment.source_id),
        metadata=content_free.entries(assessment.metadata or {}) or None,
    )


def _redacted_map(rules: Redactor, name: str, texts: Texts) -> Texts:
    if name == "assessments":
        return {key: _redacted_text(rules, text) for key, text in texts.items()}
    path = _MAPS.get(name)
    if path is None:  # prompts: names of the registry
        return texts
    if rules.is_content_free:
        from mlcore.redaction import content_free  # noqa: PLC0415 -- only where rules apply

        texts = content_free.entries(texts)
    entries = {key: text for key, text in texts.items() if key not in TRACE_LOCATIONS}
    kept = {key: text for key, text in texts.items() if key in TRACE_LOCATIONS}
    return {**kept, **rules.value(entries, path)}


def _redacted_text(rules: Redactor, text: str) -> str:
    assessment = assessments.parse(text)
    redacted = redacted_assessment(rules, assessment)
    return text if redacted == assessment else assessments.text(redacted)
