"""The values of attributes of spans: MLflow keeps each as JSON text."""

from __future__ import annotations

import json
from typing import Any

Attributes = dict[str, Any]


def json_text(value: Any) -> str:
    """The JSON text of an attribute's value."""
    return json.dumps(value, ensure_ascii=False, default=str)


def json_value(text: Any) -> Any:
    """The value of an attribute: what its JSON text says, or the text itself."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
