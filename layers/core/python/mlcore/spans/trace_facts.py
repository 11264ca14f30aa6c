"""Facts: data about a trace, such as its times, that is derived from its spans.

Facts of two sets of spans can be joined in any order and any number of times with the same result:
each fact is the earliest or the latest time, or a value of the earliest span. Sums over spans do
not have this property; they are computed again from all spans (:mod:`mlcore.spans.trace_totals`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

from mlcore import reserved_tags
from mlcore.errors import MlflowError
from mlcore.limits.traces import check_session, check_tag, check_trace_name
from mlcore.spans import previews
from mlcore.spans.names import SESSION_ATTRIBUTES, SPAN_TRACE_TAG, SYSTEM_TAGS, USER_ATTRIBUTE
from mlcore.spans.stored_span import StoredSpan, hexadecimal, text_of

_SKIPPED_RESOURCE: Final = ("telemetry.sdk.", "mlflow.")

OrderedText = list[Any]
"""A text of a span, preceded by its sort key: the span's start time and id."""


class RootFacts(NamedTuple):
    """The facts (times, state and texts) that come from the trace's earliest root span. Times are
    in nanoseconds."""

    start: int
    span_id: str
    negative_end: int
    """The negated end time, so that of two versions of a span the minimum is the one that ends
    last."""
    state: str
    request: str | None
    response: str | None


class SpanFacts(NamedTuple):
    """The facts of a set of spans: what they say about their trace, such as its times, session and
    tags. ``start`` and ``end`` are in milliseconds; all other times are in nanoseconds."""

    start: int
    end: int | None = None
    root: RootFacts | None = None
    session: OrderedText | None = None
    user: OrderedText | None = None
    tags: Mapping[str, OrderedText] = {}
    """Tags by key. A number before each text gives the trace's tags precedence over attributes of
    resources."""
    usage: Mapping[str, int] = {}
    cost: Mapping[str, float] = {}
    masked: tuple[str, ...] = ()
    """Keys of tags and metadata that a client has set or deleted. Values from spans do not change
    them."""

    @property
    def text(self) -> str:
        fields = {name: value for name, value in self._asdict().items() if value}
        fields["start"] = self.start
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def tag_texts(self) -> dict[str, str]:
        return {key: ordered_text[-1] for key, ordered_text in self.tags.items()}

    def metadata_texts(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        if self.session:
            texts[reserved_tags.TRACE_SESSION] = self.session[-1]
        if self.user:
            texts[reserved_tags.TRACE_USER] = self.user[-1]
        if self.usage:
            texts[reserved_tags.TRACE_TOKEN_USAGE] = json.dumps(self.usage)
        if self.cost:
            texts[reserved_tags.TRACE_COST] = json.dumps(self.cost)
        return texts


def parse(text: str | None) -> SpanFacts | None:
    if text is None:
        return None
    fields = json.loads(text)
    root = fields.pop("root", None)
    masked = tuple(fields.pop("masked", ()))
    return SpanFacts(**fields, root=RootFacts(*root) if root else None, masked=masked)


def facts_of_spans(spans: Iterable[tuple[StoredSpan, Mapping[str, Any]]]) -> SpanFacts:
    """Returns what spans of a trace, at least one, say about the trace (such as its times, session
    and tags). Each span is given with its OpenTelemetry resource's attributes. Raises
    InvalidParameterValue if a session id or trace name is too long."""
    return reduce(join, [_of_span(span, resource) for span, resource in spans])


def join(facts: SpanFacts, other: SpanFacts) -> SpanFacts:
    """Joins two sets of facts (data about a trace), each derived from a set of the trace's spans,
    and returns one. Sums (token usage and cost) and masked keys are those of ``facts``."""
    tags = dict(facts.tags)
    for key, ordered_text in other.tags.items():
        tags[key] = min(tags.get(key, ordered_text), ordered_text)
    return facts._replace(
        start=min(facts.start, other.start),
        end=max(facts.end, other.end) if facts.end and other.end else facts.end or other.end,
        root=_least(facts.root, other.root),
        session=_least(facts.session, other.session),
        user=_least(facts.user, other.user),
        tags=tags,
    )


def _least(fact: Any, other: Any) -> Any:
    if fact is None or other is None:
        return fact or other
    return min(fact, other, key=lambda values: [(value is not None, value) for value in values])


def _of_span(span: StoredSpan, resource: Mapping[str, Any]) -> SpanFacts:
    attributes = span["attributes"]
    start = span["start_time_unix_nano"]
    span_id = hexadecimal(span["span_id"])
    sort_key = [start, span_id]
    end = span["end_time_unix_nano"]
    session = next(filter(None, map(attributes.get, SESSION_ATTRIBUTES)), None)
    session = text_of(session) if session else None
    user = text_of(attributes[USER_ATTRIBUTE]) if attributes.get(USER_ATTRIBUTE) else None
    tags = {key: [1, *sort_key, text] for key, text in _resource_tags(resource)}
    root = None
    if span["parent_span_id"] is None:
        tags.update({key: [0, *sort_key, text] for key, text in _trace_tags(attributes)})
        failed = span["status"]["code"] == "STATUS_CODE_ERROR"
        inputs, outputs = (
            attributes.get(reserved_tags.SPAN_INPUTS),
            attributes.get(reserved_tags.SPAN_OUTPUTS),
        )
        root = RootFacts(
            start,
            span_id,
            -end,
            "ERROR" if failed else "OK",
            previews.preview(inputs, "user") if inputs else None,
            previews.preview(outputs, "assistant") if outputs else None,
        )
    return SpanFacts(
        start=start // 1_000_000,
        end=end // 1_000_000 if end else None,
        root=root,
        session=[*sort_key, check_session(session)] if session else None,
        user=[*sort_key, user] if user else None,
        tags=tags,
    )


def _resource_tags(resource: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for key, value in resource.items():
        if not key.startswith(_SKIPPED_RESOURCE):
            try:
                yield check_tag(key, value if isinstance(value, str) else json.dumps(value))
            except (MlflowError, TypeError):
                continue


def _trace_tags(attributes: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name, value in attributes.items():
        if name.startswith(SPAN_TRACE_TAG):
            try:
                key, text = check_tag(name.removeprefix(SPAN_TRACE_TAG), str(text_of(value)))
            except MlflowError:
                continue
            if key == reserved_tags.TRACE_NAME:
                check_trace_name(text)
            if key not in SYSTEM_TAGS:
                yield key, text
