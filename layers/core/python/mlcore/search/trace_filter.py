"""Parses filters and orders of traces.

MLflow first parses all clauses and then checks the operator of each; the same error must win here.
The messages are MLflow's; sets in them are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from mlcore import reserved_tags
from mlcore.errors import InvalidParameterValue
from mlcore.search import filter_tokens as t
from mlcore.search.clauses import IDENTIFIER, NULL_CHECK, PARENTHESIS, ClauseItem
from mlcore.search.grammar import (
    OrderBy,
    check_ordering_count,
    parse_conditions,
    parse_direction,
    parse_list,
    strip_quotes,
    unquote_required,
)

ATTRIBUTE: Final = "attribute"
TAG: Final = "tag"
METADATA: Final = "request_metadata"
SPAN: Final = "span"
FEEDBACK: Final = "feedback"
EXPECTATION: Final = "expectation"
ISSUE: Final = "issue"
_KINDS: Final = {
    **{kind: kind for kind in (ATTRIBUTE, TAG, METADATA, SPAN, FEEDBACK, EXPECTATION, ISSUE)},
    "attributes": ATTRIBUTE,
    "trace": ATTRIBUTE,
    "tags": TAG,
    "metadata": METADATA,
}
ASSESSED: Final = (FEEDBACK, EXPECTATION)

AMOUNTS: Final = (reserved_tags.TRACE_TOKEN_USAGE, reserved_tags.TRACE_COST)
"""Metadata that MLflow keeps as numbers."""
CONTENT: Final = "content"
SPAN_ATTRIBUTE: Final = "attributes."

_NUMBERS: Final = {
    "timestamp": "timestamp_ms",
    "timestamp_ms": "timestamp_ms",
    "execution_time": "execution_time_ms",
    "execution_time_ms": "execution_time_ms",
    "end_time": "end_time_ms",
    "end_time_ms": "end_time_ms",
}
_SEARCHABLE: Final = (
    *_NUMBERS,
    *("request_id", "status", "client_request_id", "name", "run_id", "prompt", "text"),
)
_SORTABLE: Final = (*_NUMBERS, "experiment_id", "status", "request_id", "name", "run_id")
_LISTS: Final = ("name", "status", "request_id", "run_id", "client_request_id")
_TEXT: Final = ("=", "!=", "LIKE", "ILIKE", "RLIKE")
_LIST: Final = (*_TEXT, "IN", "NOT IN")
_NULLABLE: Final = (*_TEXT, "IS NULL", "IS NOT NULL")
_ORDERED: Final = ("<", "<=", ">", ">=")
_NUMERIC: Final = ("=", "!=", *_ORDERED)
_SPAN_KEYS: Final = ("name", "status", "type")
_LATEST: Final = 2**63 - 1
SPAN_TOLERANCE: Final = 10_000
"""A span is tested if it begins at most this many ms before the earliest time in a filter."""

Value = str | int | float | tuple[str, ...] | None


class TraceCondition(NamedTuple):
    """A condition of a filter of traces (``tags.a = 'x'``). Aliases in ``key`` are resolved: a
    trace's name is a tag, its run is metadata."""

    kind: str
    key: str
    operator: str
    value: Value


class TraceFilter(NamedTuple):
    """A parsed filter of traces: its conditions, all of which must hold, grouped by the data that
    tests them."""

    own: tuple[TraceCondition, ...] = ()
    """Conditions on the trace itself."""
    runs: tuple[str, ...] = ()
    """Runs in which the trace must have been made, or to which it must be linked."""
    assessed: tuple[TraceCondition, ...] = ()
    """Conditions on the assessments of the trace or of its session."""
    spans: tuple[TraceCondition, ...] = ()
    """Conditions that one span must meet together."""
    earliest: int = -(2**63)
    latest: int = _LATEST
    """The range of the request time in milliseconds (with the field before) that follows from the
    conditions."""
    spans_from: int | None = None
    """The earliest start in nanoseconds of spans that are tested; None for any start."""

    @property
    def everything(self) -> bool:
        return self == TraceFilter()


def parse_filter(text: str) -> TraceFilter:
    """Parses the filter of a search for traces. Raises InvalidParameterValue if it is malformed, or
    a field does not support its comparison."""
    conditions = [
        _without_aliases(_condition(item)) for item in parse_conditions(text, "'{found}'")
    ]
    for condition in conditions:
        _check(condition)
    return _grouped(conditions)


def parse_order_by(texts: Sequence[str]) -> tuple[OrderBy, ...]:
    """Parses the ``order_by`` of a search for traces to orderings, most significant first. If a
    field is repeated, only its first ordering is kept. Raises InvalidParameterValue."""
    check_ordering_count(texts)
    orders: dict[tuple[str, str], OrderBy] = {}
    for text in texts:
        field, ascending = parse_direction(text)
        kind, key, _, _ = _without_aliases(TraceCondition(*_field(field, _SORTABLE), "", None))
        if kind == METADATA and key in AMOUNTS:
            raise InvalidParameterValue(
                f"Ordering by reserved metadata '{key}' is not supported because it is represented "
                "by multiple columns."
            )
        if kind not in (ATTRIBUTE, TAG, METADATA):
            raise InvalidParameterValue(f"Invalid identifier type '{kind}'")
        orders.setdefault((kind, key), OrderBy(kind, key, ascending))
    return tuple(orders.values())


def _grouped(conditions: Sequence[TraceCondition]) -> TraceFilter:
    earliest, latest, spans_from = -(2**63), _LATEST, None
    for kind, key, sign, value in conditions:
        if (kind, key) != (ATTRIBUTE, "timestamp_ms") or not isinstance(value, int | float):
            continue
        if sign in (">", ">="):
            spans_from = value if spans_from is None else max(spans_from, value)
        low, high = _bounds(sign, value)
        earliest, latest = max(earliest, low), min(latest, high)
    runs = [condition for condition in conditions if _of_run(condition)]
    return TraceFilter(
        tuple(
            condition
            for condition in conditions
            if condition.kind in (ATTRIBUTE, TAG, METADATA, ISSUE) and not _of_run(condition)
        ),
        tuple(str(run.value) for run in runs),
        tuple(condition for condition in conditions if condition.kind in ASSESSED),
        tuple(condition for condition in conditions if condition.kind == SPAN),
        earliest,
        latest,
        None
        if spans_from is None
        else int(max(-(2**64), min(2**64, spans_from)) - SPAN_TOLERANCE) * 1_000_000,
    )


def _bounds(sign: str, value: float) -> tuple[int, int]:
    """Returns the least and the greatest integer that meet the comparison ``integer sign
    value``."""
    value = max(-(2**64), min(2**64, value))
    low = math.floor(value) + 1 if sign == ">" else math.ceil(value)
    high = math.ceil(value) - 1 if sign == "<" else math.floor(value)
    return (
        low if sign in ("=", ">", ">=") else -(2**63),
        high if sign in ("=", "<", "<=") else _LATEST,
    )


def _of_run(condition: TraceCondition) -> bool:
    return condition[:3] == (METADATA, reserved_tags.SOURCE_RUN, "=")


def _condition(item: ClauseItem) -> TraceCondition:
    left, sign, right = item.parts
    if left.kind != IDENTIFIER:
        raise InvalidParameterValue(
            f"Invalid comparison clause. Expected 'Identifier' found '{left.text}'"
        )
    _refuse_type_names(left, sign, right)
    kind, key = _field(left.text, _SEARCHABLE)
    if item.kind == NULL_CHECK:
        return TraceCondition(kind, key, sign.text, None)
    if kind in ASSESSED:
        _check_assessed(kind, sign.text, right)
    value = _value(kind, key, right)
    if kind == SPAN:
        # Only here are operators case-sensitive.
        _check_span(key, sign.text)
    return TraceCondition(kind, key, sign.text.upper(), value)


def _refuse_type_names(left: ClauseItem, sign: ClauseItem, right: ClauseItem) -> None:
    """Raises InvalidParameterValue for a comparison of the bare words ``text`` and ``timestamp``,
    which MLflow's parser takes for SQL types."""
    refused = left.text.lower() == "text" or (
        left.text == "timestamp" and (right.kind != t.INTEGER or sign.text not in _NUMERIC)
    )
    if refused:
        raise InvalidParameterValue(
            f"Invalid clause(s) in filter string: '{left.text}', '{sign.text}', '{right.text}'"
        )


def _field(text: str, attributes: Sequence[str]) -> tuple[str, str]:
    word, dot, key = text.partition(".")
    if not dot:
        word, key = ATTRIBUTE, text
    word = strip_quotes(word, "`")
    if word not in _KINDS:
        raise InvalidParameterValue(
            f"Invalid entity type '{word}'. Valid values are {_as_set(_KINDS)}"
        )
    kind = _KINDS[word]
    key = strip_quotes(strip_quotes(key, "'\""), "`")
    if kind == ATTRIBUTE and key not in attributes:
        raise InvalidParameterValue(
            f"Invalid attribute key '{key}' specified. Valid keys are '{_as_set(attributes)}'"
        )
    return kind, key


def _value(kind: str, key: str, right: ClauseItem) -> Value:
    if right.kind in (t.STRING, IDENTIFIER):
        return unquote_required(right.text)
    if right.kind == PARENTHESIS and kind in (ATTRIBUTE, TAG, SPAN):
        if kind == ATTRIBUTE and key not in _LISTS:
            raise InvalidParameterValue(
                f"Only attributes in {_as_set(_LISTS)} supports comparison with a list of quoted "
                "string values."
            )
        return parse_list(right.text)
    if right.kind in (t.INTEGER, t.FLOAT) and kind in (ATTRIBUTE, *ASSESSED):
        if kind == ATTRIBUTE and key not in _NUMBERS:
            raise InvalidParameterValue(
                f"Only the '{_as_set(_NUMBERS)}' attributes support comparison with numeric values."
            )
        # A bound outside int64 counts as infinite.
        whole = right.kind == t.INTEGER and len(right.text) < 100
        return int(right.text) if whole else float(right.text)
    if kind == ATTRIBUTE:
        raise InvalidParameterValue(
            "Expected a quoted string value or a list of quoted string values for attributes. "
            f"Got value {right.text}"
        )
    if kind in ASSESSED:
        raise InvalidParameterValue(
            f"Expected a quoted string value or numeric value for {kind} (e.g. 'my-value' or 0.8). "
            f"Got value {right.text}"
        )
    raise InvalidParameterValue(
        f"Expected a quoted string value for {kind} (e.g. 'my-value'). Got value {right.text}"
    )


def _check_assessed(kind: str, sign: str, right: ClauseItem) -> None:
    numeric = sign in _ORDERED
    if right.kind in ((t.INTEGER, t.FLOAT) if numeric else (t.STRING, IDENTIFIER)):
        return
    if numeric:
        raise InvalidParameterValue(
            f"Expected a numeric value for {kind} when using comparator '{sign}'. "
            f"Got value {right.text}"
        )
    raise InvalidParameterValue(
        f"Expected a quoted string value for {kind} (e.g. 'my-value'). Got value {right.text}"
    )


def _without_aliases(condition: TraceCondition) -> TraceCondition:
    """Returns the condition with aliases replaced by the stored field. As in MLflow this applies to
    all kinds of fields but spans: even ``tags.name`` means the trace's name."""
    if condition.kind == SPAN:
        return condition
    word = condition.key.lower()
    if word in ("name", "prompt"):
        return condition._replace(
            kind=TAG,
            key=reserved_tags.TRACE_NAME if word == "name" else reserved_tags.LINKED_PROMPTS,
        )
    if word == "run_id":
        return condition._replace(kind=METADATA, key=reserved_tags.SOURCE_RUN)
    if word == "text":
        return condition._replace(kind=SPAN, key=CONTENT)
    return condition._replace(key=_NUMBERS.get(word, condition.key))


def _check(condition: TraceCondition) -> None:
    kind, key, sign, value = condition
    if kind == ISSUE:
        if key != "id":
            raise InvalidParameterValue(
                f"Invalid issue attribute '{key}'. Supported attributes: id"
            )
        _require(sign, ("=",), f"issue.{key} comparator '{sign}' ")
    elif kind == ATTRIBUTE and key in _NUMBERS:
        if sign not in _NUMERIC:
            # MLflow lists the operators of texts in this message.
            raise InvalidParameterValue(f"Invalid comparator '{sign}' not one of '{_as_set(_LIST)}")
    elif kind == ATTRIBUTE:
        _require(sign, _LIST, f"Invalid comparator '{sign}' ")
    elif kind in (TAG, METADATA):
        _check_text(condition)
    elif kind == SPAN:
        _check_span(key, sign)
    else:
        if not key:
            raise InvalidParameterValue("Assessment field name cannot be empty")
        _require(sign, (*_NULLABLE, *_ORDERED), f"assessment.{key} comparator '{sign}' ")
    if isinstance(value, tuple) != (sign in ("IN", "NOT IN")):
        raise InvalidParameterValue(f"Invalid comparator '{sign}' for value {value!r}")


def _check_text(condition: TraceCondition) -> None:
    kind, key, sign, value = condition
    if kind == TAG:
        if sign not in _NULLABLE:
            raise InvalidParameterValue(
                f"Invalid comparator '{sign}' not one of '{_as_set(_NULLABLE)}"
            )
        if key == reserved_tags.LINKED_PROMPTS:
            _check_prompt(sign, value)
        return
    _require(sign, _NULLABLE, f"Invalid comparator '{sign}' ")
    if key in AMOUNTS and sign not in ("=", "!=", "IS NULL", "IS NOT NULL"):
        raise InvalidParameterValue(
            f"Comparator '{sign}' is not supported for reserved metadata '{key}'. "
            "Only '=', '!=', 'IS NULL', and 'IS NOT NULL' are supported."
        )


def _check_span(key: str, sign: str) -> None:
    if key == SPAN_ATTRIBUTE:
        raise InvalidParameterValue("Span attribute name cannot be empty after 'attributes.'")
    if key == CONTENT:
        _require(sign, ("ILIKE", "LIKE"), f"span.{key} comparator '{sign}' ")
    elif key in _SPAN_KEYS or key.startswith(SPAN_ATTRIBUTE):
        _require(sign, _LIST, f"span.{key} comparator '{sign}' ")
    else:
        raise InvalidParameterValue(
            f"Invalid span attribute '{key}'. "
            f"Supported attributes: {', '.join(_SPAN_KEYS)}, attributes.<attribute_name>."
        )


def _check_prompt(sign: str, value: Value) -> None:
    if sign != "=":
        raise InvalidParameterValue(
            f"Invalid comparator '{sign}' for prompts filter. "
            "Only '=' is supported with format: prompt = \"name/version\""
        )
    if str(value).count("/") != 1:
        raise InvalidParameterValue(
            f"Invalid prompts filter value '{value}'. Expected format: prompt = \"name/version\""
        )


def _require(sign: str, allowed: Sequence[str], about: str) -> None:
    if sign not in allowed:
        raise InvalidParameterValue(f"{about}not one of '{_as_set(allowed)}'")


def _as_set(words: Sequence[str] | dict[str, str]) -> str:
    """Returns the words as MLflow prints a Python set (``{'a', 'b'}``), sorted."""
    return "{" + ", ".join(repr(word) for word in sorted(words)) + "}"
