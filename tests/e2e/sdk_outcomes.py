"""What calls of SDKs came to, without what is new in each call, and where two of them differ."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

SCRIPTS = Path(__file__).with_name("sdks")
MADE_BY_SDK: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=call_)[0-9a-f]{28}"
    r"|(?<=pyd_ai_)[0-9a-f]{32}|(?<=time taken=)[0-9.]+"
)
"""Ids that SDKs invent, and measured times."""
MADE_FIELDS: Final = ("created", "timestamp", "provider_url")
"""Fields in which LiteLLM and Pydantic AI write the current time and the address that they call."""
CREATED: Final = 1741569952
"""What the doubles write in such a field."""
DETAIL: Final = re.compile(r"""(["'])detail\1: ?("[^"]*"|'[^']*'), ?""")
"""MLflow's own field of an error, which some SDKs show with the rest of the body."""


def lasting(value: Any) -> Any:
    """A value without what an SDK itself makes anew for each call."""
    if isinstance(value, dict):
        return {
            MADE_BY_SDK.sub("", name): lasting(member)
            for name, member in value.items()
            if name not in MADE_FIELDS or member == CREATED
        }
    if isinstance(value, list):
        return [lasting(member) for member in value]
    if isinstance(value, str):
        return re.sub(r"\s", "", DETAIL.sub("", MADE_BY_SDK.sub("", value)))
    return value


def difference(one: Any, other: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first place where two values differ."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs: Any = ((name, one[name], other[name]) for name in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(range(len(one)), one, other, strict=True)
    else:
        return path, one, other
    found = (difference(first, second, f"{path}/{name}") for name, first, second in pairs)
    return next(filter(None, found), None)
