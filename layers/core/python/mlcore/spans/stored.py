"""A span as MLflow stores it: a JSON object in which each attribute's value is JSON text."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from mlcore.spans.attributes import json_value
from mlcore.spans.names import SPAN_COST, SPAN_MODEL, SPAN_PROVIDER, SPAN_TYPE, SPAN_USAGE

if TYPE_CHECKING:
    from mlcore.repos.traces.span_packs import Node

_SHORT_STATUS: Final = {"STATUS_CODE_OK": "OK", "STATUS_CODE_ERROR": "ERROR"}
MODEL_LENGTH: Final = 500

StoredSpan = dict[str, Any]


def content(span: StoredSpan) -> str:
    """As MLflow's server writes it: filters of searches look into this text."""
    return json.dumps(span, ensure_ascii=False, default=str)


def node(span: StoredSpan) -> Node:
    """[id, end, parent id, start, usage, cost, name, type, status, model, provider]."""
    attributes = span["attributes"]
    parent = span["parent_span_id"]
    return [
        hexadecimal(span["span_id"]),
        span["end_time_unix_nano"],
        hexadecimal(parent) if parent else None,
        span["start_time_unix_nano"],
        _object(attributes.get(SPAN_USAGE)),
        _object(attributes.get(SPAN_COST)),
        span["name"],
        json_value(attributes.get(SPAN_TYPE)),
        _SHORT_STATUS.get(span["status"]["code"], "UNSET"),
        _dimension(attributes.get(SPAN_MODEL)),
        _dimension(attributes.get(SPAN_PROVIDER)),
    ]


def hexadecimal(text: str) -> str:
    return base64.b64decode(text).hex()


def text_of(value: Any) -> Any:
    """What JSON text says if that is a text; else the value as it is."""
    found = json_value(value)
    return found if isinstance(found, str) else value


def base64_id(number: int, length: int) -> str:
    """An id of so many bytes as spans keep it. Raises OverflowError: it has more."""
    return base64.b64encode(number.to_bytes(length, "big")).decode()


def _object(value: Any) -> dict[str, Any] | None:
    found = json_value(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else None


def _dimension(value: Any) -> str | None:
    text = text_of(value)
    return text[:MODEL_LENGTH] if isinstance(text, str) else None
