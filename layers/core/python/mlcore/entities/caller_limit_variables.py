"""Limits on each caller's number of requests, from a Lambda function's environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

KEY, USER, WORKSPACE = KINDS = ("key", "user", "workspace")
"""The kinds of callers that have limits, narrowest first."""


class CallerLimit(NamedTuple):
    """How many requests each caller of a kind (API key, user or workspace) may send per second and
    per day; None for no limit."""

    per_second: int | None = None
    per_day: int | None = None
    """In a day of UTC."""


def variables(kind: str) -> tuple[str, str]:
    """Returns the names of the two environment variables that limit the requests of a kind of
    caller (``key``, ``user`` or ``workspace``): per second, per day."""
    return f"{kind.upper()}_REQUESTS_PER_SECOND", f"{kind.upper()}_REQUESTS_PER_DAY"


def stated(environment: Mapping[str, str]) -> dict[str, CallerLimit]:
    """Returns the limits on callers' requests that environment variables set, by kind of caller
    (``key``, ``user``, ``workspace``); kinds without a limit are left out. 0 and an empty text mean
    no limit.

    Raises:
        ValueError: a limit is no whole number; the process then does not start.
    """
    limits = {
        kind: CallerLimit(*(_number(environment, name) for name in variables(kind)))
        for kind in KINDS
    }
    return {kind: limit for kind, limit in limits.items() if limit != _UNLIMITED}


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name) or "0"
    if not text.isdecimal():
        raise ValueError(f"{name} must be a whole number of requests, 0 for no limit: {text!r}")
    return int(text) or None


_UNLIMITED: Final = CallerLimit()
