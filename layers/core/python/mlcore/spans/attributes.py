"""Values of span attributes, which MLflow stores as JSON text."""

from __future__ import annotations

import json
from typing import Any

Attributes = dict[str, Any]


def json_text(value: Any) -> str:
    """Returns the value of a span attribute as the JSON text in which MLflow stores it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def json_value(text: Any) -> Any:
    """Returns the value of a span attribute: the parsed JSON text, or the text itself if it is not
    JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
