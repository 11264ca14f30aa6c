"""A span as MLflow stores it: a JSON object whose attribute values are JSON texts."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final

from mlcore import reserved_tags
from mlcore.spans.attribute_values import json_value
from mlcore.spans.names import SPAN_COST
from mlcore.wire.json_text import storable

if TYPE_CHECKING:
    from mlcore.repos.traces.span_packs import Node

_SHORT_STATUS: Final = {"STATUS_CODE_OK": "OK", "STATUS_CODE_ERROR": "ERROR"}
MODEL_LENGTH: Final = 500
_PLAIN_TEXT: Final = re.compile(r'"[^"\\\x00-\x1f]*"')
"""The JSON of a text without escapes."""
INTERNAL: Final = "SPAN_KIND_INTERNAL"
"""The default kind of a span. Spans that release 0.1.0 stored have no kind."""

StoredSpan = dict[str, Any]


def content(span: StoredSpan) -> str:
    """Returns the JSON text of a span, exactly as MLflow's server writes it, since search filters
    match against this text."""
    return json.dumps(span, ensure_ascii=False, default=str)


def node(span: StoredSpan) -> Node:
    """Returns a list of the few values of a span that searches for traces need, its *node*: [id,
    end, parent id, start, token usage, cost, name, type, status, model, model provider]."""
    attributes = span["attributes"]
    parent = span["parent_span_id"]
    return [
        hexadecimal(span["span_id"]),
        span["end_time_unix_nano"],
        hexadecimal(parent) if parent else None,
        span["start_time_unix_nano"],
        _object(attributes.get(reserved_tags.SPAN_TOKEN_USAGE)),
        _object(attributes.get(SPAN_COST)),
        span["name"],
        json_value(attributes.get(reserved_tags.SPAN_TYPE)),
        _SHORT_STATUS.get(span["status"]["code"], "UNSET"),
        _dimension(attributes.get(reserved_tags.SPAN_MODEL)),
        _dimension(attributes.get(reserved_tags.SPAN_PROVIDER)),
    ]


def hexadecimal(text: str) -> str:
    return binascii.a2b_base64(text).hex()


def text_of(value: Any) -> Any:
    """Returns the text inside a JSON text (``'"a"'`` gives ``a``), with ``?`` for each unpaired
    surrogate; any other value unchanged."""
    # Parsing takes most of the time of converting spans. So values that are no strings (the large
    # ones are objects) and strings without escapes are not parsed.
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value):
        return value[1:-1]
    if not isinstance(value, str) or not value.lstrip(" \t\n\r").startswith('"'):
        return value
    parsed = json_value(value)
    return storable(parsed) if isinstance(parsed, str) else value


def base64_id(number: int, length: int) -> str:
    """Returns the number of a span or trace as an id of ``length`` bytes in Base64. Raises
    OverflowError if the number needs more bytes."""
    return base64.b64encode(number.to_bytes(length, "big")).decode()


def _object(value: Any) -> dict[str, Any] | None:
    parsed = json_value(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else None


def _dimension(value: Any) -> str | None:
    text = text_of(value)
    return text[:MODEL_LENGTH] if isinstance(text, str) else None
