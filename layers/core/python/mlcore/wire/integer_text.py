"""Integers in the texts of query strings, paths and JSON strings."""

from __future__ import annotations

import re
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?([0-9]+)")


def parse_integer(text: str, digits: int) -> int | None:
    """Returns the integer of a text, in ASCII digits that one sign may precede; None for any other
    text, and for more than ``digits`` digits (Python refuses to read thousands of them)."""
    match = _INTEGER.fullmatch(text)
    return int(text) if match and len(match[1]) <= digits else None
