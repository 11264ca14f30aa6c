"""Plans a search of traces: translates a filter into accesses, each of which alone finds all
matches of the filter.

As in :mod:`mlcore.search.run_plan`, an access is a set of traces that an index can list and that
contains every match of the filter and perhaps more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mlcore import reserved_tags
from mlcore.search import text_fields, text_lookups
from mlcore.search.run_plan import MAX_ACCESSES, NamePrefix, TextLookups, literal_prefix
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    CONTENT,
    METADATA,
    SPAN,
    SPAN_ATTRIBUTE,
    TAG,
    TraceCondition,
    TraceFilter,
)

WHOLE_METADATA: Final = {
    reserved_tags.SOURCE_RUN: text_fields.SOURCE_RUN,
    reserved_tags.MODEL_ID: text_fields.MODEL,
    reserved_tags.TRACE_USER: text_fields.USER,
}
"""Metadata keys whose values are indexed as a whole, and the names of their fields."""


class TraceIds(NamedTuple):
    """An access path of a search: the traces with these ids."""

    trace_ids: tuple[str, ...]


class WholeValues(NamedTuple):
    """An access path of a search: the traces that have one of ``values`` in ``field``, a field
    whose values are indexed as whole texts."""

    field: str
    values: tuple[str, ...]


class TracesOfRun(NamedTuple):
    """An access path of a search: the traces that were made in a run or linked to it."""

    run_id: str


Access = TraceIds | NamePrefix | TextLookups | WholeValues | TracesOfRun

MAX_VALUES: Final = 100
"""Maximum number of values in all :class:`WholeValues` of a search, since each value (of a
condition ``IN``) costs a Query in each experiment. Further conditions get no such access."""

_NOT_AS_IS: Final = re.compile(r'["\\\x00-\x1f]')
"""Characters that JSON escapes."""


def accesses(query: TraceFilter) -> list[Access]:
    """Returns the accesses (sets of traces that an index can list) that a filter of traces allows,
    at most :data:`MAX_ACCESSES`; those by trace ids come first. Each access alone contains all
    matches."""
    result: list[Access] = [TracesOfRun(run_id) for run_id in query.runs]
    values = 0
    for condition in (*query.own, *query.spans):
        for access in _accesses(condition):
            if isinstance(access, WholeValues):
                values += len(access.values)
                if values > MAX_VALUES:
                    values -= len(access.values)
                    continue
            result.append(access)
    result.sort(key=lambda access: not isinstance(access, TraceIds))
    return result[:MAX_ACCESSES]


def is_asynchronous(access: Access) -> bool:
    """Returns whether the access path reads index entries that the indexer writes after the traces
    themselves, so that the entries may lag behind."""
    return not isinstance(access, TraceIds | NamePrefix)


def field_of(kind: str, key: str) -> str:
    """Returns the name of the full-text field that holds the values that a condition of a trace
    filter tests. The condition has a kind (such as ``tag``) and a key."""
    if kind == SPAN:
        return text_fields.CONTENT
    if kind == TAG:
        return tag_field(key)
    return metadata_field(key) if kind == METADATA else f"{kind}.{key}"


def tag_field(key: str) -> str:
    return text_fields.NAME if key == reserved_tags.TRACE_NAME else f"tags.{key}"


def metadata_field(key: str) -> str:
    return f"metadata.{key}"


def _accesses(condition: TraceCondition) -> Iterator[Access]:
    kind, key, sign, value = condition
    values: tuple[str, ...] = (value,) if sign == "=" and isinstance(value, str) else ()
    if sign == "IN" and isinstance(value, tuple):
        values = value
    whole = _whole_field(kind, key)
    if values and (kind, key) == (ATTRIBUTE, "request_id"):
        yield TraceIds(values)
    elif values and whole is not None:
        yield WholeValues(whole, tuple(dict.fromkeys(values)))
    elif kind != ATTRIBUTE and isinstance(value, str):
        yield from _texts(condition)


def _whole_field(kind: str, key: str) -> str | None:
    """Returns the full-text field of an attribute, tag or metadata key whose values are indexed as
    whole texts; None if its values are indexed by word or not at all."""
    if (kind, key) == (ATTRIBUTE, "client_request_id"):
        return text_fields.CLIENT_REQUEST
    if (kind, key) == (TAG, reserved_tags.LINKED_PROMPTS):
        return text_fields.PROMPT
    return WHOLE_METADATA.get(key) if kind == METADATA else None


def _texts(condition: TraceCondition) -> Iterator[Access]:
    kind, key, sign, value = condition
    if not isinstance(value, str):
        return
    if (kind, key) == (TAG, reserved_tags.TRACE_NAME):
        begin = value if sign == "=" else literal_prefix(value) if sign == "LIKE" else ""
        if begin or sign == "=":
            yield NamePrefix(begin, whole=begin == value)
            if sign == "=" or value.rstrip("%") == begin:
                # The index of names finds exactly the matches.
                return
    pattern = _pattern(condition)
    if pattern is not None:
        field = field_of(kind, key)
        lookups = text_lookups.lookups_for(field, *pattern)
        if lookups:
            yield TextLookups(field, lookups)


def _pattern(condition: TraceCondition) -> tuple[str, str] | None:
    """Returns (operator, pattern) for a lookup of a condition in the full-text index; None if the
    index cannot find the condition's matches."""
    kind, key, sign, value = condition
    if not isinstance(value, str):
        return None
    if field_of(kind, key) != text_fields.CONTENT or key == CONTENT:
        return sign, value
    if key == "name" and sign in ("=", "LIKE", "ILIKE"):
        return ("LIKE" if sign == "=" else sign), f'%"name": "{_NOT_AS_IS.sub("%", value)}"%'
    if key.startswith(SPAN_ATTRIBUTE) and sign in ("LIKE", "ILIKE"):
        return sign, value
    return None
