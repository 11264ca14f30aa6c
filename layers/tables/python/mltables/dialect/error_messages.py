"""Rewrites DuckDB's error messages in Databricks' terms, without names that only the generated SQL
has."""

from __future__ import annotations

import re
from typing import Final

_ZERO: Final = "Division by zero"
_NO_FORM: Final = re.compile(r"Macro (?:spark|inner)_(\w+)\(\) (?:does not support|has multiple)")
_FAILED: Final = re.compile(r"Conversion Error: Could not convert string '(\D.*?)(?:' to UINT8)?$")
_OWN: Final = re.compile(r"\b(?:spark|inner|cte)_(\w+)")


def databricks_text(text: str) -> str:
    """Converts one line of a DuckDB error message for the caller: removes the prefixes of the
    generated SQL from names, and has own messages for a division by zero and for wrong
    arguments."""
    if _ZERO in text:
        return "[DIVIDE_BY_ZERO] Division by zero: try_divide() gives NULL where the divisor is 0."
    if match := _NO_FORM.search(text):
        return f"{match[1]}() does not take arguments of these types, or not so many."
    if match := _FAILED.search(text):
        return match[1]
    return _OWN.sub(r"\1", text.removeprefix("Invalid Input Error: "))
