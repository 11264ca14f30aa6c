"""Redacts spans before anything is derived from them or stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlcore.redaction import content_free
from mlcore.repos.traces.redaction import INPUTS, METADATA, OUTPUTS, TAGS
from mlcore.reserved_tags import SPAN_INPUTS, SPAN_OUTPUTS, TRACE_SESSION, TRACE_USER
from mlcore.spans.names import (
    SESSION_ATTRIBUTES,
    SPAN_TRACE_ID,
    SPAN_TRACE_TAG,
    SYSTEM_TAGS,
    USER_ATTRIBUTE,
)
from mlcore.spans.stored_span import StoredSpan

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor

_PATHS = {
    SPAN_INPUTS: INPUTS,
    SPAN_OUTPUTS: OUTPUTS,
    USER_ATTRIBUTE: (USER_ATTRIBUTE, f"{METADATA}.{TRACE_USER}"),
    **{key: (key, f"{METADATA}.{TRACE_SESSION}") for key in SESSION_ATTRIBUTES},
}
"""All paths by which rules name an attribute, for the attributes with several of them."""
_IDS = ("trace_id", "span_id", "parent_span_id", "parent_id")
_ID = re.compile(r"(?:tr-|0x)?[0-9a-fA-F]{16,32}|[A-Za-z0-9+/]{11}=|[A-Za-z0-9+/]{22}==")
_TIMES = (
    "start_time",
    "end_time",
    "timestamp",
    "time_unix_nano",
    "start_time_unix_nano",
    "end_time_unix_nano",
)
_TIME = re.compile("[0-9]{1,20}")
_AT_ONCE = 32
"""Number of spans that are searched together. If a rule matches in them, each is searched again."""
_OWN = "mlflow."
"""Prefix of attributes whose names are MLflow's. Other names may contain private text."""


def span(rules: Redactor, original: StoredSpan) -> StoredSpan:
    """Returns a redacted copy of a span, with the same ids, times and kind. A span in which no rule
    matches is returned itself, or without its content if a rule removes that."""
    if rules.is_content_free:
        original = _without_content(original)
    if _is_clean(rules, (original,)):
        return original
    status = original["status"]
    message = status.get("message")
    return {
        **original,
        "name": rules.text(original["name"], "name"),
        "attributes": _attributes(rules, original["attributes"]),
        "events": [
            {
                **event,
                "name": rules.text(event["name"], "events.name"),
                "attributes": rules.value(event.get("attributes"), "events"),
            }
            for event in original.get("events") or ()
        ],
        "status": {**status, "message": rules.text(message, "status")} if message else status,
        "links": [
            {**link, "attributes": rules.value(link.get("attributes"), "links")}
            for link in original.get("links") or ()
        ],
    }


def _without_content(original: StoredSpan) -> StoredSpan:
    status = original["status"]
    return {
        **original,
        "attributes": content_free.attributes(original["attributes"]),
        "events": [],
        "status": {**status, "message": ""} if status.get("message") else status,
        "links": [{**link, "attributes": {}} for link in original.get("links") or ()],
    }


def _is_clean(rules: Redactor, originals: Iterable[StoredSpan]) -> bool:
    """Whether no rule matches anywhere in spans."""
    values: list[Any] = []
    keys: set[str] = set()
    has_events = has_links = False
    for original in originals:
        attributes = original["attributes"]
        keys.update(attributes)
        values += (original["name"], original["status"].get("message"), *attributes.values())
        for event in original.get("events") or ():
            has_events = True
            values += (event["name"], event.get("attributes"))
        for link in original.get("links") or ():
            has_links = True
            values.append(link.get("attributes"))
    return not (
        rules.names("name")
        or rules.names("status")
        or (has_events and (rules.names("events") or rules.names("events.name")))
        or (has_links and rules.names("links"))
        or any(rules.names(*_paths_of(key)) for key in keys)
    ) and rules.is_clean((*values, *keys))


def spans(
    rules: Redactor, originals: Sequence[tuple[StoredSpan, Mapping[str, Any]]]
) -> list[tuple[StoredSpan, Mapping[str, Any]]]:
    """Redacts spans and the attributes of their resources, which become tags of the trace. Returns
    pairs (span, attributes of its resource)."""
    redacted_resources: dict[int, Mapping[str, Any]] = {}
    redacted = []
    for begin in range(0, len(originals), _AT_ONCE):
        some = originals[begin : begin + _AT_ONCE]
        are_clean = not rules.is_content_free and _is_clean(
            rules, [original for original, _ in some]
        )
        for original, resource in some:
            if id(resource) not in redacted_resources:  # most spans of a request share one
                kept = content_free.entries(resource) if rules.is_content_free else dict(resource)
                redacted_resources[id(resource)] = rules.value(kept, TAGS, "resource")
            stored = original if are_clean else span(rules, original)
            redacted.append((stored, redacted_resources[id(resource)]))
    return redacted


def file(rules: Redactor, content: dict[str, Any]) -> dict[str, Any]:
    """Redacts the content of a file of spans (``{"spans": [span, …]}``, in any form that clients
    have used) and returns it. Raises TypeError, KeyError or AttributeError if it has another
    form."""
    members = {key: item for key, item in content.items() if key != "spans"}
    if rules.is_content_free:
        members = {}
    return {
        **rules.value(members),
        "spans": [_span_of_file(rules, original) for original in content["spans"]],
    }


def _span_of_file(rules: Redactor, original: dict[str, Any]) -> dict[str, Any]:
    redacted: dict[str, Any] = {}
    if rules.is_content_free:
        original = _of_file_without_content(original)
    for key, value in original.items():
        if key == "attributes":
            redacted[key] = _attributes(rules, value)
        elif key in ("events", "links"):
            redacted[key] = _with_ids(rules, value, key)
        else:
            redacted[rules.text(key)] = _with_ids(rules, value, key)
    return redacted


def _of_file_without_content(original: dict[str, Any]) -> dict[str, Any]:
    """Returns those members of a span in a file that are stored without the trace's content, if
    they have their expected form."""
    kept: dict[str, Any] = {}
    for key, value in original.items():
        if key == "attributes":
            kept[key] = content_free.attributes(value)
        elif key == "name":
            kept[key] = str(value)
        elif key in ("events", "links"):
            kept[key] = []
        elif (
            (key in _IDS and isinstance(value, str) and _ID.fullmatch(value))
            or (key in _TIMES and _TIME.fullmatch(str(value)))
            or (key in ("kind", "status_code") and content_free.word(value))
            or (key in (*_IDS, *_TIMES) and value is None)
        ):
            kept[key] = value
        elif key == "context" and isinstance(value, dict):
            kept[key] = _of_file_without_content(value)
        elif key == "status_message":
            kept[key] = ""
        elif key == "status" and isinstance(value, dict):
            kept[key] = {"code": content_free.word(value.get("code")), "message": ""}
    return kept


def _with_ids(rules: Redactor, value: Any, path: str) -> Any:
    """Redacts a part of a span and returns it; ids of spans and times stay."""
    if isinstance(value, list):
        return [_with_ids(rules, item, path) for item in value]
    if isinstance(value, dict) and path != "attributes":
        return {
            rules.text(key): rules.value(item, path)
            if key == "attributes"
            else _with_ids(rules, item, key)
            for key, item in value.items()
        }
    if path in _TIMES and _TIME.fullmatch(str(value)):
        return value
    if path in _IDS and isinstance(value, str) and _ID.fullmatch(value):
        return value
    return rules.value(value, path)


def _attributes(rules: Redactor, attributes: Mapping[str, Any]) -> dict[str, Any]:
    redacted: dict[str, Any] = {}
    for key, value in attributes.items():
        if key == SPAN_TRACE_ID or key.removeprefix(SPAN_TRACE_TAG) in SYSTEM_TAGS:
            redacted[key] = value
            continue
        paths = _paths_of(key)
        is_own = key.startswith(_OWN) and not key.startswith(SPAN_TRACE_TAG)
        redacted[key if is_own else rules.text(key)] = (
            rules.text(value, *paths) if isinstance(value, str) else rules.value(value, *paths)
        )
    return redacted


def _paths_of(key: str) -> tuple[str, ...]:
    """Returns all paths by which rules name an attribute of spans."""
    if key.startswith(SPAN_TRACE_TAG):
        return key, f"{TAGS}.{key.removeprefix(SPAN_TRACE_TAG)}"
    return _PATHS.get(key, (key,))
