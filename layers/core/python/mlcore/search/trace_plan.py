"""Which index entries can lead to the answer of a search of traces; knows no key, no table and no
size. As in :mod:`mlcore.search.plan`, an access holds every match, and perhaps more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mlcore.search import lookups, text_fields
from mlcore.search.plan import NamePrefix, Text, literal_begin
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    CONTENT,
    METADATA,
    NAME_TAG,
    PROMPTS_TAG,
    SOURCE_RUN,
    SPAN,
    SPAN_ATTRIBUTE,
    TAG,
    Condition,
    Filter,
)

WHOLE_METADATA: Final = {
    SOURCE_RUN: text_fields.SOURCE_RUN,
    "mlflow.modelId": text_fields.MODEL,
    "mlflow.trace.user": text_fields.USER,
}
"""Entries of the metadata that are indexed as they are, and their fields."""


class Ids(NamedTuple):
    """Traces by their ids."""

    trace_ids: tuple[str, ...]


class Whole(NamedTuple):
    """Traces one of whose texts of a field is one of some values."""

    field: str
    values: tuple[str, ...]


class OfRun(NamedTuple):
    """Traces that a run made, or that were linked to it."""

    run_id: str


Access = Ids | NamePrefix | Text | Whole | OfRun

_NOT_AS_IS: Final = re.compile(r'["\\\x00-\x1f]')
"""What JSON writes otherwise."""


def accesses(query: Filter) -> list[Access]:
    found: list[Access] = [OfRun(run_id) for run_id in query.runs]
    for condition in (*query.own, *query.spans):
        found += _accesses(condition)
    return found


def is_asynchronous(access: Access) -> bool:
    """Whether the indexer writes the entries, or some of them."""
    return not isinstance(access, Ids | NamePrefix)


def field_of(kind: str, key: str) -> str:
    """The text of a trace that a condition of this kind is about."""
    if kind == SPAN:
        return text_fields.CONTENT
    if kind == TAG:
        return tag_field(key)
    return metadata_field(key) if kind == METADATA else f"{kind}.{key}"


def tag_field(key: str) -> str:
    return text_fields.NAME if key == NAME_TAG else f"tags.{key}"


def metadata_field(key: str) -> str:
    return f"metadata.{key}"


def _accesses(condition: Condition) -> Iterator[Access]:
    kind, key, sign, value = condition
    values: tuple[str, ...] = (value,) if sign == "=" and isinstance(value, str) else ()
    if sign == "IN" and isinstance(value, tuple):
        values = value
    whole = _whole_field(kind, key)
    if values and (kind, key) == (ATTRIBUTE, "request_id"):
        yield Ids(values)
    elif values and whole is not None:
        yield Whole(whole, values)
    elif kind != ATTRIBUTE and isinstance(value, str):
        yield from _texts(condition)


def _whole_field(kind: str, key: str) -> str | None:
    """The field of whole values that a condition is about."""
    if (kind, key) == (ATTRIBUTE, "client_request_id"):
        return text_fields.CLIENT_REQUEST
    if (kind, key) == (TAG, PROMPTS_TAG):
        return text_fields.PROMPT
    return WHOLE_METADATA.get(key) if kind == METADATA else None


def _texts(condition: Condition) -> Iterator[Access]:
    kind, key, sign, value = condition
    if not isinstance(value, str):
        return
    if (kind, key) == (TAG, NAME_TAG):
        begin = value if sign == "=" else literal_begin(value) if sign == "LIKE" else ""
        if begin or sign == "=":
            yield NamePrefix(begin, whole=begin == value)
            if sign == "=" or value.rstrip("%") == begin:
                # The index of names holds just these.
                return
    pattern = _pattern(condition)
    if pattern is not None:
        field = field_of(kind, key)
        found = lookups.of(field, *pattern)
        if found:
            yield Text(field, found)


def _pattern(condition: Condition) -> tuple[str, str] | None:
    """What a condition asks of a text that may be indexed: operator and pattern."""
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
