"""Token usage and cost of a trace: sums over its spans in which nothing counts twice."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from mlcore.spans.names import COST_KEYS, TOKEN_KEYS

Amounts = dict[str, Any]


class Part(NamedTuple):
    """What a span adds to a sum."""

    span_id: str
    parent_id: str | None
    end: int
    amounts: Amounts | None


def tokens(parts: Collection[Part]) -> dict[str, int]:
    found = _sum(parts, TOKEN_KEYS[:3], TOKEN_KEYS[3:], 0)
    return amounts_of(found, TOKEN_KEYS, token_count)


def cost(parts: Collection[Part]) -> dict[str, float]:
    return amounts_of(_sum(parts, COST_KEYS, (), 0.0), COST_KEYS, finite)


def amounts_of(
    amounts: Any, keys: Collection[str], convert: Callable[[Any], Any]
) -> dict[str, Any]:
    """Of JSON (or its text) what MLflow keeps: these keys, in this order, with numbers."""
    if isinstance(amounts, str):
        try:
            amounts = json.loads(amounts)
        except ValueError:
            return {}
    if not isinstance(amounts, dict):
        return {}
    found = {key: convert(amounts[key]) for key in keys if key in amounts}
    return {key: value for key, value in found.items() if value is not None}


def token_count(value: Any) -> int | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(str(value))
        if not number.is_finite() or number != number.to_integral_value():
            return None
    except (InvalidOperation, ValueError):
        return None
    return int(number) if -(2**63) <= number < 2**63 else None


def finite(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _sum(
    parts: Collection[Part], always: Collection[str], optional: Collection[str], zero: float
) -> Amounts:
    """A span whose ancestor has amounts of its own adds nothing: those include its own.

    Floats add up in one order, whatever the order in which spans came: that of MLflow's server for
    spans that come as they end.
    """
    ids = {part.span_id for part in parts}
    children: dict[str, list[Part]] = {}
    pending: list[Part] = []
    for part in sorted(parts, key=lambda part: (part.end, part.span_id)):
        if part.parent_id and part.parent_id in ids:
            children.setdefault(part.parent_id, []).append(part)
        else:
            pending.append(part)
    totals: Amounts = {}
    while pending:
        part = pending.pop()
        if part.amounts is None:
            pending += children.get(part.span_id, ())
            continue
        totals = totals or dict.fromkeys(always, zero)
        for key in (*always, *optional):
            value = part.amounts.get(key)
            if isinstance(value, int | float):
                totals[key] = totals.get(key, zero) + value
    return totals
