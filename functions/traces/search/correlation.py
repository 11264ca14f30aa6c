"""Computes how strongly two filters of traces are correlated: their normalized pointwise mutual
information (NPMI)."""

from __future__ import annotations

import math
from typing import Any, Final

from mlcore.http import Request
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import search as trace_search
from mlcore.search.trace_filter import TraceFilter, parse_filter
from traces import messages as m

PRIOR: Final = 0.5
"""Added to each of the counts before the smoothed NPMI is computed."""


def calculate_trace_filter_correlation(
    message: m.CalculateTraceFilterCorrelation, request: Request
) -> dict[str, Any]:
    base = message.base_filter
    texts = [message.filter_string1, message.filter_string2]
    filters = [parse_filter(f"{base} and {text}" if base else text) for text in texts]
    population = parse_filter(base)
    owners = canonical_ids(message.experiment_ids)

    def trace_ids(condition: TraceFilter) -> set[str]:
        return {
            trace.trace_id for trace in trace_search.matching(owners, request.workspace, condition)
        }

    first_ids, second_ids = map(trace_ids, filters)
    total, joint = len(trace_ids(population)), len(first_ids & second_ids)
    return {
        **information(joint, len(first_ids), len(second_ids), total),
        "filter1_count": len(first_ids),
        "filter2_count": len(second_ids),
        "joint_count": joint,
        "total_count": total,
    }


def information(joint: int, first: int, second: int, total: int) -> dict[str, float]:
    """Returns the NPMI of two filters (``npmi``) and the smoothed NPMI (``npmi_smoothed``), to the
    last bit the numbers of MLflow's server. Empty if they are undefined.

    Args:
        joint, first, second, total: how many traces meet both filters, the first one, the second
            one, and how many there are.
    """
    cells = (joint, first - joint, second - joint, total - first - second + joint)
    if total <= 0 or not first or not second or min(cells) < 0:
        return {}
    return {
        "npmi": _normalized(cells, 0) if joint else -1.0,
        "npmi_smoothed": _normalized(cells, PRIOR),
    }


def _normalized(cells: tuple[int, int, int, int], prior: float) -> float:
    if not any(cells[1:]):
        return 1.0
    both, only_first, only_second, neither = (cell + prior for cell in cells)
    total = both + only_first + only_second + neither
    # Added in this order, the logarithms of independent filters cancel out exactly.
    shared = (math.log(both) + math.log(total)) - (
        math.log(both + only_first) + math.log(both + only_second)
    )
    return max(-1.0, min(1.0, shared / (math.log(total) - math.log(both))))
