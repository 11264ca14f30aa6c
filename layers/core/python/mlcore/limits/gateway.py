"""MLflow's rules about the configuration of the AI gateway: endpoint names, weights of an
endpoint's models, and the masking of secrets."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from mlcore.errors import InvalidParameterValue
from mlcore.limits.shared_checks import check_length

_NAME: Final = re.compile(r"[a-zA-Z0-9_\-\.]+")
MAX_NAME_LENGTH: Final = 500
"""Twice as many as in MLflow's database. All secrets of a workspace, or all model definitions, are
listed in one answer, so a few names of hundreds of kilobytes would be too much for it."""
MAX_AUTH_CONFIG_LENGTH: Final = 20_000
_GREATEST_FLOAT: Final = 3.4028234663852886e38
_MAX_SHOWN_DIGITS: Final = 8


def check_endpoint_name(name: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise InvalidParameterValue(
            f"Invalid endpoint name '{name}'. "
            "Name can only contain letters, numbers, underscores, hyphens, and dots."
        )


def check_names(**names: str) -> None:
    """Checks the length of names of a secret or a model definition, given by field. Raises
    InvalidParameterValue."""
    for field, name in names.items():
        check_length(field, MAX_NAME_LENGTH, name)


def mask(value: str) -> str:
    """Returns the first 3 and the last 4 characters of a secret's value, by which people can
    distinguish secrets; ``***`` for a value of less than 8 characters."""
    return f"{value[:3]}...{value[-4:]}" if len(value) >= 8 else "***"


def stored_weight(value: float) -> float:
    """Returns a model's weight (share of the traffic of a gateway endpoint), rounded to a 32-bit
    float, as protobuf prints it. Raises InvalidParameterValue if it is not finite or too large."""
    if not math.isfinite(value) or abs(value) > _GREATEST_FLOAT:
        raise InvalidParameterValue("The weight of a model must be a finite 32-bit float.")
    stored: float = _as_float(value)
    for digits in range(6, _MAX_SHOWN_DIGITS + 1):
        shown = float(f"{stored:.{digits}g}")
        if _as_float(shown) == stored:
            return shown
    return stored


def _as_float(value: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded)
