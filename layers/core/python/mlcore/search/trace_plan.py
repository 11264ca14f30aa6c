"""Which index entries can lead to the answer of a search of traces; knows no key, no table and no
size. As in :mod:`mlcore.search.plan`, an access holds every match, and perhaps more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mlcore.search import text, text_fields
from mlcore.search.plan import NamePrefix, Text, literal_begin
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    CONTENT,
    METADATA,
    NAME_TAG,
    PROMPTS_TAG,
    SPAN,
    SPAN_ATTRIBUTE,
    TAG,
    Condition,
    Filter,
)


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


def accesses(wanted: Filter) -> list[Access]:
    found: list[Access] = [OfRun(run_id) for run_id in wanted.runs]
    for condition in (*wanted.own, *wanted.spans):
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
    if kind == ATTRIBUTE:
        if values and key == "request_id":
            yield Ids(values)
        elif values and key == "client_request_id":
            yield Whole(text_fields.CLIENT_REQUEST, values)
        return
    if (kind, key) == (TAG, PROMPTS_TAG):
        yield Whole(text_fields.PROMPT, values)
        return
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
        tokens = text.guaranteed(*pattern)
        field = field_of(kind, key)
        if field == text_fields.CONTENT:
            tokens = tuple(token for token in tokens if text.in_contents(token))
        if tokens:
            yield Text(field, tokens)


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
