"""Finds traces that cost far more than other traces of the same name.

Costs are compared as logarithms with the median of their kind, in units of the median deviation,
because a few expensive traces would raise a mean and a standard deviation above themselves. If that
deviation is 0, costs from three times the median are outliers. The limits are those of MLflow's
server.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

from mlcore import reserved_tags
from mlcore.repos.traces.traces import StoredTrace
from mlcore.wire.json_text import load_json

_FEWEST: Final = 10
"""The least number of traces with a cost that a kind (traces of one name) must have."""
_DEVIATIONS: Final = 4.5
_SIGMA: Final = 1.4826
"""The ratio of standard deviation to median deviation of normally distributed values."""
_EQUAL_COSTS_FACTOR: Final = 3.0
"""If more than half of the costs are equal, costs from this many times the median are outliers."""
_MOST: Final = 0.1
"""If more than this share of a kind is expensive, none of its traces counts as an outlier."""


def explanations(stored: Sequence[StoredTrace]) -> dict[str, str]:
    """Returns explanations by trace id for traces that cost too much, such as ``cost of $0.5, 9.1
    times the median ($0.055) of 40 traces of 'chat'``."""
    kinds: dict[str, list[tuple[str, float]]] = {}
    for trace in stored:
        dollars = _cost(trace)
        if dollars is not None:
            name = trace.document.texts("tags").get(reserved_tags.TRACE_NAME, "")
            kinds.setdefault(name, []).append((trace.trace_id, dollars))
    clauses = {}
    for name, priced in kinds.items():
        if len(priced) < _FEWEST:
            continue
        typical = math.exp(statistics.median([math.log(dollars) for _, dollars in priced]))
        outliers = _outliers(priced, typical)
        if len(outliers) <= _MOST * len(priced):
            for trace_id, dollars in outliers:
                clauses[trace_id] = (
                    f"cost of ${dollars:.4g}, {dollars / typical:.1f} times the median "
                    f"(${typical:.4g}) of {len(priced)} traces of {name[:100]!r}"
                )
    return clauses


def _outliers(priced: Sequence[tuple[str, float]], typical: float) -> list[tuple[str, float]]:
    centre = math.log(typical)
    deviation = statistics.median([abs(math.log(dollars) - centre) for _, dollars in priced])
    if deviation > 0:
        least = math.exp(centre + _DEVIATIONS * _SIGMA * deviation)
    else:
        least = _EQUAL_COSTS_FACTOR * typical
    return [pair for pair in priced if pair[1] >= least]


def _cost(trace: StoredTrace) -> float | None:
    """Returns the cost of a trace in US dollars; None if it has no positive cost."""
    text = trace.document.texts("trace_metadata").get(reserved_tags.TRACE_COST)
    try:
        total = load_json(text or "{}").get("total_cost")
    except (ValueError, AttributeError):
        return None
    is_number = isinstance(total, int | float) and not isinstance(total, bool)
    return float(total) if is_number and math.isfinite(total) and total > 0 else None
