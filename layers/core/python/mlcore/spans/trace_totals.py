"""Token usage and cost of a trace: sums over its spans that count no tokens twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from mlcore.spans.names import COST_KEYS, TOKEN_KEYS
from mlcore.wire.json_text import load_json

Amounts = dict[str, Any]


class SpanAmounts(NamedTuple):
    """The tokens or the cost of one span, with the span's position in the tree."""

    span_id: str
    parent_id: str | None
    end: int
    amounts: Amounts | None


def total_tokens(parts: Collection[SpanAmounts]) -> dict[str, int]:
    """Returns the token usage of a trace from the tokens of its spans."""
    totals = _sum(parts, TOKEN_KEYS[:3], TOKEN_KEYS[3:], 0)
    return amounts_of(totals, TOKEN_KEYS, token_count)


def total_cost(parts: Collection[SpanAmounts]) -> dict[str, float]:
    """Returns the cost of a trace in US dollars (input, output and total): the sums over its spans,
    without those below a span that has a cost itself."""
    return amounts_of(_sum(parts, COST_KEYS, (), 0.0), COST_KEYS, finite_number)


def amounts_of(
    amounts: Any, keys: Collection[str], convert: Callable[[Any], Any]
) -> dict[str, Any]:
    """Returns the token counts, or the costs, that MLflow stores for a trace: those of ``amounts``
    (an object or its JSON text) with the keys ``keys``, in this order, whose values ``convert``
    accepts as numbers; {} if ``amounts`` is no object."""
    if isinstance(amounts, str):
        try:
            amounts = load_json(amounts)
        except ValueError:
            return {}
    if not isinstance(amounts, dict):
        return {}
    converted = {key: convert(amounts[key]) for key in keys if key in amounts}
    return {key: value for key, value in converted.items() if value is not None}


def joined(known: str, reported: str, keys: Collection[str]) -> Amounts:
    """Returns the token counts, or the costs, of two JSON texts, in the order of ``keys``; where
    both have a key, the one of ``reported``."""
    amounts = {
        key: value
        for text in (known, reported)
        for key, value in amounts_of(text, keys, lambda value: value).items()
    }
    return {key: amounts[key] for key in keys if key in amounts}


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


def finite_number(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _sum(
    parts: Collection[SpanAmounts], always: Collection[str], optional: Collection[str], zero: float
) -> Amounts:
    """Sums the amounts of spans by key. A span below one that has amounts is skipped, since the
    upper span's amounts include those of the lower one.

    Spans are added in the order of their ends, as on MLflow's server, so that sums of floats do not
    depend on the order of arrival.
    """
    ids = {part.span_id for part in parts}
    children: dict[str, list[SpanAmounts]] = {}
    pending: list[SpanAmounts] = []
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
                totals[key] = _added(totals.get(key, zero), value)
    return totals


def _added(total: float, value: float) -> float:
    try:
        return total + value
    except OverflowError:  # of a float and an integer beyond all floats
        return math.inf
