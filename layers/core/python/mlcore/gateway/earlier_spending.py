"""Fills a budget that begins within its window with the cost of the calls before it.

The calls are known by their traces, as to MLflow's gateway. So calls through endpoints that do not
track usage, or that were deleted since, do not count.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping
from functools import partial
from itertools import islice
from typing import Final

from mlcore import reserved_tags
from mlcore.db.table import table
from mlcore.entities.gateway import ENDPOINT, USER, WORKSPACE, BudgetPolicy
from mlcore.errors import MlflowError
from mlcore.gateway import call_traces
from mlcore.gateway.budget_windows import window_containing
from mlcore.observability import logger
from mlcore.repos.gateway import configuration, spending
from mlcore.repos.gateway.spending import Counted
from mlcore.repos.traces import pages, traces
from mlcore.repos.traces.pages import Window
from mlcore.repos.workspaces import workspaces

MAX_TRACES: Final = 5000
"""The newest traces that are read. The cost of older ones does not count."""
MAX_SECONDS: Final = 5.0
_ATTEMPTS: Final = 3


def counted(policy: BudgetPolicy, now: int) -> Counted:
    """Returns what the policy's current window has counted so far; one consistent read.

    Args:
        now: ms since 1970; it selects the window.
    """
    return spending.counted((policy.budget_policy_id, _window(policy, now)[0]))


def fill(policy: BudgetPolicy, begin: int, before: Counted = spending.NOTHING) -> None:
    """Adds to the policy's window what calls before ``begin`` cost, as far as the window has not
    counted it. Sent twice, it adds once. The policy is written already, so an error is logged.

    Args:
        begin: when the policy was written, in ms since 1970. Calls that begin later count
            themselves.
        before: what the window had counted before the policy was written.
    """
    start, end = _window(policy, begin)
    window = (policy.budget_policy_id, start)
    try:
        dollars = _cost_of_calls(policy, Window(start, begin - 1))
        for _ in range(_ATTEMPTS):
            if spending.add_earlier(window, end, dollars, before):
                return
            before = spending.counted(window)
    except MlflowError as error:
        logger.error(
            "a budget lacks the cost of the calls before it",
            extra={"budget_policy_id": policy.budget_policy_id, "error": error.error_code},
        )


def _window(policy: BudgetPolicy, now: int) -> tuple[int, int]:
    return window_containing(policy.duration_unit, policy.duration_value, now)


def _cost_of_calls(policy: BudgetPolicy, window: Window) -> float:
    """Returns the US dollars that calls cost which a policy counts and whose traces began in the
    window."""
    is_local = policy.target_scope in (WORKSPACE, ENDPOINT)
    ends_at = time.monotonic() + MAX_SECONDS
    dollars, remaining = 0.0, MAX_TRACES
    names = [policy.workspace] if is_local else workspaces.names()
    reads = [partial(_experiments_by_endpoint, policy, name) for name in names]
    for workspace, endpoints in zip(names, table.parallel(reads), strict=True):
        if not endpoints:
            continue
        experiments = sorted(set(endpoints.values()))
        for stored in islice(pages.newest_first(experiments, workspace, window), remaining):
            remaining -= 1
            metadata = traces.entity(stored).trace_metadata
            if _is_counted(policy, metadata, endpoints):
                dollars += _cost(metadata)
            if time.monotonic() > ends_at:
                return dollars
    return dollars


def _experiments_by_endpoint(policy: BudgetPolicy, workspace: str) -> dict[str, str]:
    """Returns the endpoints of a workspace whose calls a policy counts, with the experiments of
    their traces."""
    return {
        endpoint_id: endpoint.experiment_id
        for endpoint_id, endpoint in configuration.read(workspace).endpoints.items()
        if endpoint.experiment_id is not None
        and (policy.target_scope != ENDPOINT or policy.target_value == endpoint_id)
    }


def _is_counted(
    policy: BudgetPolicy, metadata: Mapping[str, str], endpoints: Collection[str]
) -> bool:
    if metadata.get(call_traces.ENDPOINT_ID) not in endpoints:
        return False
    return policy.target_scope != USER or metadata.get(call_traces.USERNAME) == policy.target_value


def _cost(metadata: Mapping[str, str]) -> float:
    """Returns the cost in a trace's metadata; 0 for anything that is no amount of money."""
    try:
        cost = json.loads(metadata.get(reserved_tags.TRACE_COST, "{}"))["total_cost"]
    except (ValueError, KeyError, TypeError):
        return 0.0
    is_amount = isinstance(cost, int | float) and math.isfinite(cost) and cost > 0
    return float(cost) if is_amount else 0.0
