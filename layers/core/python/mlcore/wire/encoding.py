"""Response bodies as JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

_encoder: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def encode(body: Mapping[str, Any]) -> str:
    """Compact JSON text; NaN and infinities become "NaN", "Infinity" and "-Infinity", as in
    protobuf's JSON."""
    try:
        return _encoder.encode(body)
    except ValueError:
        return _encoder.encode(_quote_non_finite(body))


def _quote_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _quote_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_quote_non_finite(item) for item in value]
    return value
