"""Values of span attributes, which MLflow stores as JSON text."""

from __future__ import annotations

import json
from typing import Any

Attributes = dict[str, Any]


def json_text(value: Any) -> str:
    """Returns the JSON text of an attribute's value."""
    return json.dumps(value, ensure_ascii=False, default=str)


def json_value(text: Any) -> Any:
    """Returns the value of an attribute: the parsed JSON text, or the text itself if it is not
    JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
