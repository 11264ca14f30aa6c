"""Computes the state of a trace from its spans and from a *report*, the data that a client sends
about the trace itself.

Spans and reports may arrive in any order and any number of times with the same final result. Values
of a report take precedence over values from spans. Keys whose tags or metadata a client has set are
*masked*: spans do not change them any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from mlcore import reserved_tags
from mlcore.entities.experiments import Experiment
from mlcore.repos.traces.traces import Info, StoredTrace, TraceChange
from mlcore.spans import trace_facts, trace_totals
from mlcore.spans.names import COST_KEYS, IN_STORE, SPANS_LOCATION_TAG, TOKEN_KEYS
from mlcore.spans.trace_facts import SpanFacts

UNDECIDED = ("IN_PROGRESS", "STATE_UNSPECIFIED")
Texts = Mapping[str, str]
_LONGEST: Final = 2**63 - 1


class ReportedState(NamedTuple):
    """What a client has reported about a trace, apart from its spans. Times are in milliseconds."""

    request_time: int
    execution_duration: int | None = None
    state: str = "IN_PROGRESS"
    client_request_id: str | None = None
    request_preview: str | None = None
    response_preview: str | None = None

    @property
    def text(self) -> str:
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def report_of(info: Info) -> ReportedState | None:
    return None if info.given is None else ReportedState(**json.loads(info.given))


def info(
    report: ReportedState | None, span_facts: SpanFacts | None, first_pack: str | None
) -> Info:
    """Returns the info of a trace that users see. A client's report takes precedence over the facts
    (times, state and texts that were derived from the trace's spans).

    Args:
        report: None if no client has sent data about the trace itself.
        span_facts: None if no span has arrived.
        first_pack: the suffix of the trace's first pack of spans (see
            :mod:`mlcore.repos.traces.span_packs`); None if there is none.
    """
    root = span_facts.root if span_facts else None
    text = report.text if report else None
    if report is None:
        report = ReportedState(span_facts.start if span_facts else 0)
    duration = report.execution_duration
    if duration is None and span_facts and span_facts.end:
        duration = span_facts.end - report.request_time
    return Info(
        request_time=report.request_time,
        execution_duration=bounded_duration(duration),
        state=root.state if root and report.state in UNDECIDED else report.state,
        client_request_id=report.client_request_id,
        request_preview=_first_known(report.request_preview, root.request if root else None),
        response_preview=_first_known(report.response_preview, root.response if root else None),
        given=text,
        facts=span_facts.text if span_facts else None,
        first_pack=first_pack,
    )


def bounded_duration(milliseconds: int | None) -> int | None:
    """Returns a duration, or the nearest one that fits in 64 bits, as readers of traces expect. The
    difference of two times that clients sent may need one bit more."""
    return None if milliseconds is None else max(-_LONGEST, min(milliseconds, _LONGEST))


def with_report(
    trace: StoredTrace, report: ReportedState, tags: Texts, metadata: Texts
) -> TraceChange:
    """Returns the change to write to a stored trace when a client has sent data about the trace
    itself.

    Args:
        report: the data, which takes precedence over values that were derived from spans.
        tags, metadata: the tags and metadata to set; spans do not change these keys any more. Of
            token usage and cost, numbers that an earlier report named and this one omits stay.
    """
    span_facts = trace_facts.parse(trace.info.facts)
    known = trace.document.texts("trace_metadata")
    metadata = {**metadata, **_joined_amounts(known, metadata, span_facts)}
    if span_facts:
        span_facts = masked(span_facts, tags, metadata)
    sets = {
        "tags": _changed_texts(trace.document.texts("tags"), tags),
        "trace_metadata": _changed_texts(known, metadata),
    }
    return TraceChange(info(report, span_facts, trace.info.first_pack), sets)


def with_facts(
    trace: StoredTrace, span_facts: SpanFacts, first_pack: str | None
) -> TraceChange | None:
    """Returns the change to write to a stored trace after further spans of it have arrived: its new
    times, state, previews, tags and metadata. None if all of them stay as they are.

    Args:
        trace: the trace as it is stored.
        span_facts: what all spans of the trace, the new ones included, say about it: times, state
            and texts (:mod:`mlcore.spans.trace_facts`).
        first_pack: the suffix of the trace's first pack of spans (see
            :mod:`mlcore.repos.traces.span_packs`); None if there is none.
    """
    before = trace_facts.parse(trace.info.facts)
    tags = trace.document.texts("tags")
    metadata = trace.document.texts("trace_metadata")
    hidden = {*span_facts.masked}
    for present, texts_before, texts_now in (
        (tags, before.tag_texts() if before else {}, span_facts.tag_texts()),
        (metadata, before.metadata_texts() if before else {}, span_facts.metadata_texts()),
    ):
        hidden |= {key for key in texts_now if key in present and key not in texts_before}
    span_facts = span_facts._replace(masked=tuple(sorted(hidden)))
    new_info = info(report_of(trace.info), span_facts, first_pack)
    sets = {
        "tags": _changed_texts(
            tags, {**_without_masked(span_facts.tag_texts(), hidden), SPANS_LOCATION_TAG: IN_STORE}
        ),
        "trace_metadata": _changed_texts(
            metadata, _without_masked(span_facts.metadata_texts(), hidden)
        ),
    }
    if new_info == trace.info and not any(sets.values()):
        return None
    return TraceChange(new_info, sets)


def masked(span_facts: SpanFacts, tags: Texts, metadata: Texts) -> SpanFacts:
    """Returns ``span_facts`` (what the spans say about their trace) with those tags and metadata
    masked whose keys are among ``tags`` and ``metadata``, which a client has set or deleted: the
    trace then keeps the client's values of these keys."""
    hidden = {*span_facts.masked, *(span_facts.tag_texts().keys() & tags.keys())}
    hidden |= span_facts.metadata_texts().keys() & metadata.keys()
    return span_facts._replace(masked=tuple(sorted(hidden)))


def tags_and_metadata(
    span_facts: SpanFacts, experiment: Experiment, trace_id: str
) -> dict[str, Texts]:
    """Returns the tags and metadata of a new trace of which only spans have arrived, as
    ``{"tags": …, "trace_metadata": …}``.

    Args:
        span_facts: what these spans say about the trace, such as its session and tags.
        experiment: the experiment of the trace.
    """
    tags = {
        **artifact_location(experiment, trace_id),
        **span_facts.tag_texts(),
        SPANS_LOCATION_TAG: IN_STORE,
    }
    return {"tags": tags, "trace_metadata": span_facts.metadata_texts()}


def artifact_location(experiment: Experiment, trace_id: str) -> dict[str, str]:
    """Returns, as a tag, the location at which clients store the files of a trace."""
    root = experiment.artifact_location
    end = min((position for position in map(root.find, "?#") if position >= 0), default=len(root))
    head, tail = root[:end], root[end:]
    head = head if head.endswith(":/") else head.rstrip("/") + "/"
    return {reserved_tags.ARTIFACT_LOCATION: f"{head}traces/{trace_id}/artifacts{tail}"}


def _joined_amounts(known: Texts, reported: Texts, span_facts: SpanFacts | None) -> dict[str, str]:
    """Returns the token usage and cost of two reports about a trace, as metadata: the numbers of
    ``reported``, and those of ``known``, the trace's metadata so far, that ``reported`` lacks.
    Totals of spans are not joined: whether the spans or the report came first would then matter."""
    of_spans = (
        _without_masked(span_facts.metadata_texts(), {*span_facts.masked}) if span_facts else {}
    )
    return {
        key: json.dumps(trace_totals.joined(known[key], reported[key], names))
        for key, names in (
            (reserved_tags.TRACE_TOKEN_USAGE, TOKEN_KEYS),
            (reserved_tags.TRACE_COST, COST_KEYS),
        )
        if key in known and key in reported and key not in of_spans
    }


def _first_known(text: str | None, other: str | None) -> str | None:
    return other if text is None else text


def _without_masked(texts: Texts, hidden: set[str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key not in hidden}


def _changed_texts(present: Texts, wanted: Texts) -> dict[str, str]:
    return {key: text for key, text in wanted.items() if present.get(key) != text}
