"""Rewrites DuckDB's error messages in Databricks' terms, without names that only the generated SQL
has."""

from __future__ import annotations

import re
from typing import Final

_OVERFLOW: Final = re.compile(
    r"^Out of Range Error: Overflow |^Conversion Error: Type INT128 with value \S+ can't be cast"
)
_NO_NUMBER: Final = re.compile(r"Could not convert string '(.*) is no number' to DOUBLE")
"""The error of ``inner_summand()``."""
_ZERO: Final = "Division by zero"
_NO_FORM: Final = re.compile(r"Macro (?:spark|inner)_(\w+)\(\) (?:does not support|has multiple)")
_CONVERSION: Final = "Conversion Error: Could not convert string '"
_TARGET: Final = re.compile(r"' to [A-Z0-9_]+$")
_FAILED: Final = "' to UINT8"
"""The end of an error of ``inner_fail()``, unless the line is cut."""
_OWN: Final = re.compile(r"\b(?:spark|inner|cte)_(\w+)")


def databricks_text(text: str) -> str:
    """Converts one line of a DuckDB error message for the caller: removes the prefixes of the
    generated SQL from names, and has own messages for a division by zero and for wrong
    arguments."""
    if _ZERO in text:
        return "[DIVIDE_BY_ZERO] Division by zero: try_divide() gives NULL where the divisor is 0."
    if match := _NO_FORM.search(text):
        return f"{match[1]}() does not take arguments of these types, or not so many."
    if _OVERFLOW.search(text):
        return f"[ARITHMETIC_OVERFLOW] {text.split(': ', 1)[-1]}"
    if match := _NO_NUMBER.search(text):
        return (
            f"[CAST_INVALID_INPUT] The value '{match[1]}' of the type \"STRING\" cannot be cast to "
            '"DOUBLE". Use try_cast() to get NULL instead.'
        )
    if text == "std::bad_cast":
        return "A text in the statement is not valid Unicode."
    target = _TARGET.search(text)
    if text.startswith(_CONVERSION) and (target is None or target[0] == _FAILED):
        return text.removeprefix(_CONVERSION).removesuffix(_FAILED)
    return _OWN.sub(r"\1", text.removeprefix("Invalid Input Error: "))
