"""Makes the response headers with what remains of a caller's limits of the AI gateway, under the
names that OpenAI's and Anthropic's clients read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple


class Remaining(NamedTuple):
    """How many requests or tokens a caller may still use under one limit of the AI gateway."""

    noun: str
    """``requests`` or ``tokens``."""
    limit: int
    remaining: int
    resets_at: int
    """When the limit's minute or day ends, in ms since 1970."""


def headers(readings: Iterable[Remaining], now: int) -> dict[str, str]:
    """Returns the response headers that describe a gateway call's rate limits: one set in OpenAI's
    form and one in Anthropic's for requests, and the same for tokens. Of several limits of requests
    (or of tokens) they describe the one with the least remaining.

    OpenAI's are described at https://platform.openai.com/docs/guides/rate-limits, Anthropic's at
    https://docs.claude.com/en/api/rate-limits.

    Args:
        now: ms since 1970.
    """
    tightest: dict[str, Remaining] = {}
    for reading in readings:
        known = tightest.get(reading.noun)
        if known is None or _order(reading) < _order(known):
            tightest[reading.noun] = reading
    named: dict[str, str] = {}
    for noun, (_, limit, remaining, resets_at) in tightest.items():
        seconds = max(0, math.ceil((resets_at - now) / 1000))
        moment = datetime.fromtimestamp(resets_at / 1000, tz=UTC)
        named |= {
            f"x-ratelimit-limit-{noun}": str(limit),
            f"x-ratelimit-remaining-{noun}": str(remaining),
            f"x-ratelimit-reset-{noun}": f"{seconds}s",
            f"anthropic-ratelimit-{noun}-limit": str(limit),
            f"anthropic-ratelimit-{noun}-remaining": str(remaining),
            f"anthropic-ratelimit-{noun}-reset": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        }
    return named


def _order(reading: Remaining) -> tuple[int, int]:
    return reading.remaining, -reading.resets_at
