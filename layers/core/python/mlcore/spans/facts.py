"""What the spans of a trace tell about it.

Facts of two sets of spans join to those of both, whatever the order and however often: each keeps
the least of its kind, a time or what the earliest span says. Sums over spans are no such facts;
they are made anew from all spans (:mod:`mlcore.spans.usage`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

from mlcore.errors import MlflowError
from mlcore.limits.traces import check_session, check_tag, check_trace_name
from mlcore.spans import previews
from mlcore.spans.names import (
    COST,
    SESSION,
    SESSION_ATTRIBUTES,
    SPAN_INPUTS,
    SPAN_OUTPUTS,
    SPAN_TRACE_TAG,
    TOKEN_USAGE,
    TRACE_NAME_TAG,
    USER,
    USER_ATTRIBUTE,
)
from mlcore.spans.stored import StoredSpan, hexadecimal, text_of

_SKIPPED_RESOURCE: Final = ("telemetry.sdk.", "mlflow.")

Told = list[Any]
"""What a span says, behind what orders it: the span's start, its id, then the text."""


class Root(NamedTuple):
    """The trace's first span."""

    start: int
    span_id: str
    unended: int
    """The negative end, so that of two versions of a span the one that ends last is least."""
    state: str
    request: str | None
    response: str | None


class Facts(NamedTuple):
    """Times are in milliseconds."""

    start: int
    end: int | None = None
    root: Root | None = None
    session: Told | None = None
    user: Told | None = None
    tags: Mapping[str, Told] = {}
    """Behind a rank: tags of the trace count before attributes of the resource."""
    usage: Mapping[str, int] = {}
    cost: Mapping[str, float] = {}
    masked: tuple[str, ...] = ()
    """Tags and metadata that were set or deleted otherwise, which counts."""

    @property
    def text(self) -> str:
        told = {name: value for name, value in self._asdict().items() if value}
        told["start"] = self.start
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def tag_texts(self) -> dict[str, str]:
        return {key: told[-1] for key, told in self.tags.items()}

    def metadata_texts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.session:
            found[SESSION] = self.session[-1]
        if self.user:
            found[USER] = self.user[-1]
        if self.usage:
            found[TOKEN_USAGE] = json.dumps(self.usage)
        if self.cost:
            found[COST] = json.dumps(self.cost)
        return found


def parse(text: str | None) -> Facts | None:
    if text is None:
        return None
    told = json.loads(text)
    root = told.pop("root", None)
    masked = tuple(told.pop("masked", ()))
    return Facts(**told, root=Root(*root) if root else None, masked=masked)


def of_spans(spans: Iterable[tuple[StoredSpan, Mapping[str, Any]]]) -> Facts:
    """The facts of at least one span, each with the attributes of its resource.

    Raises:
        InvalidParameterValue: a session or a trace has too long a name.
    """
    return reduce(join, [_of_span(span, resource) for span, resource in spans])


def join(one: Facts, other: Facts) -> Facts:
    """Of sums and masks those of ``one`` stay."""
    tags = dict(one.tags)
    for key, told in other.tags.items():
        tags[key] = min(tags.get(key, told), told)
    return one._replace(
        start=min(one.start, other.start),
        end=max(one.end, other.end) if one.end and other.end else one.end or other.end,
        root=_least(one.root, other.root),
        session=_least(one.session, other.session),
        user=_least(one.user, other.user),
        tags=tags,
    )


def _least(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda told: [(value is not None, value) for value in told])


def _of_span(span: StoredSpan, resource: Mapping[str, Any]) -> Facts:
    attributes = span["attributes"]
    start = span["start_time_unix_nano"]
    span_id = hexadecimal(span["span_id"])
    place = [start, span_id]
    end = span["end_time_unix_nano"]
    session = next(filter(None, map(attributes.get, SESSION_ATTRIBUTES)), None)
    session = text_of(session) if session else None
    user = text_of(attributes[USER_ATTRIBUTE]) if attributes.get(USER_ATTRIBUTE) else None
    tags = {key: [1, *place, text] for key, text in _resource_tags(resource)}
    root = None
    if span["parent_span_id"] is None:
        tags.update({key: [0, *place, text] for key, text in _trace_tags(attributes)})
        failed = span["status"]["code"] == "STATUS_CODE_ERROR"
        inputs, outputs = attributes.get(SPAN_INPUTS), attributes.get(SPAN_OUTPUTS)
        root = Root(
            start,
            span_id,
            -end,
            "ERROR" if failed else "OK",
            previews.preview(inputs, "user") if inputs else None,
            previews.preview(outputs, "assistant") if outputs else None,
        )
    return Facts(
        start=start // 1_000_000,
        end=end // 1_000_000 if end else None,
        root=root,
        session=[*place, check_session(session)] if session else None,
        user=[*place, user] if user else None,
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
            if key == TRACE_NAME_TAG:
                check_trace_name(text)
            yield key, text
