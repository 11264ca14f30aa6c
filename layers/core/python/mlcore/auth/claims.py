"""Reads the values of a claim of a user's OpenID Connect token. The attributes of a group that a
directory provisions over SCIM are read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def values_of(values: Mapping[str, Any], claim: str) -> tuple[str, ...]:
    """Returns the strings of a token's claim that is a string or a list of strings, such as the
    user's groups; empty if it is missing or of another type. A claim inside an object is named by
    its path with dots (``realm_access.roles``), unless a claim has the dots in its name."""
    value = values.get(claim)
    if value is None and "." in claim:
        value = values
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return (value,)
    return (
        tuple(element for element in value if isinstance(element, str))
        if isinstance(value, list)
        else ()
    )
