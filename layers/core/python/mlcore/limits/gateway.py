"""MLflow's rules about the gateway's configuration: names, weights, what is shown of
secrets."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from mlcore.errors import InvalidParameterValue

_NAME: Final = re.compile(r"[a-zA-Z0-9_\-\.]+")
_GREATEST_FLOAT: Final = 3.4028234663852886e38
_SHORTEST_SHOWN: Final = 8


def check_endpoint_name(name: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise InvalidParameterValue(
            f"Invalid endpoint name '{name}'. "
            "Name can only contain letters, numbers, underscores, hyphens, and dots."
        )


def masked(value: str) -> str:
    """What of a secret's value people may see, to tell it from others."""
    return f"{value[:3]}...{value[-4:]}" if len(value) >= 8 else "***"


def weight(value: float) -> float:
    """A weight as protobuf's float keeps and shows it. Raises InvalidParameterValue."""
    if not math.isfinite(value) or abs(value) > _GREATEST_FLOAT:
        raise InvalidParameterValue("The weight of a model must be a finite 32-bit float.")
    kept: float = _as_float(value)
    for digits in range(6, _SHORTEST_SHOWN + 1):
        shown = float(f"{kept:.{digits}g}")
        if _as_float(shown) == kept:
            return shown
    return kept


def _as_float(value: float) -> float:
    (kept,) = struct.unpack("<f", struct.pack("<f", value))
    return float(kept)
