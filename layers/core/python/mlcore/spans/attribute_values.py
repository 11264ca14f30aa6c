"""Values of span attributes, which MLflow stores as JSON text."""

from __future__ import annotations

import json
from typing import Any

from mlcore.wire.json_text import parse_json_text

Attributes = dict[str, Any]


def json_text(value: Any) -> str:
    """Returns the value of a span attribute as the JSON text in which MLflow stores it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def json_value(text: Any) -> Any:
    """Returns the value of a span attribute: the parsed JSON text, or the text itself if it is not
    JSON, or nested more than 200 levels deep; None for an empty one."""
    if not text:
        return None
    try:
        return parse_json_text(text, lone_surrogates=True)
    except (TypeError, ValueError):
        return text
