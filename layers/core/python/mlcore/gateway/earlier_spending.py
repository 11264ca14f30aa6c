"""Fills a budget that begins within its window with the cost of the calls before it.

The calls are known by their traces, as to MLflow's gateway. So calls through endpoints that do not
track usage, or that were deleted since, do not count.

Users may write traces into the experiment of an endpoint, too. Only a trace about which no client
has reported anything counts, because a report is the only other way to the metadata that the
gateway sets. Its spans may still be of others, so its cost has a limit.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db.table import table
from mlcore.entities.gateway import ENDPOINT, USER, WORKSPACE, BudgetPolicy
from mlcore.gateway import call_traces
from mlcore.gateway.budget_windows import window_containing
from mlcore.observability import logger
from mlcore.providers.completions import MAX_COUNT
from mlcore.repos.gateway import configuration, spending
from mlcore.repos.gateway.spending import WindowSpending
from mlcore.repos.traces import pages
from mlcore.repos.traces.pages import Window
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.workspaces import workspaces
from mlcore.spans import facts

MAX_TRACES: Final = 5000
"""The traces that are read, the newest of each workspace first."""
MAX_SECONDS: Final = 5.0
MAX_DOLLARS: Final = 2 * MAX_COUNT * 1_000 / 1_000_000
"""No trace of a call costs more, 33,554 US dollars: as many tokens as one call can have read and
written, at 1,000 dollars for a million. The dearest model in the price list costs 600."""
_WORKSPACES_AT_ONCE: Final = 20
_FIRST_PAGE: Final = 100
"""Traces of each experiment that are read at first."""
_ATTEMPTS: Final = 3


def counted(policy: BudgetPolicy, now: int) -> WindowSpending:
    """Returns what the policy's current window has counted so far; one consistent read.

    Args:
        now: ms since 1970; it selects the window.
    """
    return spending.counted((policy.budget_policy_id, _window(policy, now)[0]))


def fill(policy: BudgetPolicy, begin: int, before: WindowSpending = spending.NOTHING) -> None:
    """Adds to the policy's window what calls before ``begin`` cost, as far as the window has not
    counted it. Sent twice, it adds once. The policy is written already, so any error is logged.

    Args:
        begin: when the policy was written, in ms since 1970. Calls that begin later count
            themselves.
        before: what the window had counted before the policy was written.
    """
    details = {"budget_policy_id": policy.budget_policy_id}
    try:
        start, end = _window(policy, begin)
        window = (policy.budget_policy_id, start)
        dollars, is_whole = _cost_of_calls(policy, Window(start, begin - 1))
        if not is_whole:
            logger.warning("a budget counts only a part of the calls before it", extra=details)
        for _ in range(_ATTEMPTS):
            if spending.add_earlier(window, end, dollars, before):
                return
            before = spending.counted(window)
    except Exception:  # any error: a budget that lacks earlier calls is better than a failed write
        logger.exception("a budget lacks the cost of the calls before it", extra=details)


def _window(policy: BudgetPolicy, now: int) -> tuple[int, int]:
    return window_containing(policy.duration_unit, policy.duration_value, now)


def _cost_of_calls(policy: BudgetPolicy, window: Window) -> tuple[float, bool]:
    """Returns the US dollars that calls cost which a policy counts and whose traces began in the
    window, and whether all of their traces could be read."""
    ends_at = time.monotonic() + MAX_SECONDS
    dollars, remaining = 0.0, MAX_TRACES
    for part in _parts(policy):
        if time.monotonic() > ends_at:
            return dollars, False
        if not part.experiment_ids:
            continue
        for stored in pages.newest_first(
            part.experiment_ids, part.workspace, window, page_items=_FIRST_PAGE
        ):
            if remaining == 0 or time.monotonic() > ends_at:
                return dollars, False
            remaining -= 1
            dollars += _cost(policy, stored, part.endpoint_ids)
    return dollars, True


class _Part(NamedTuple):
    """Experiments of a workspace, few enough to read their first pages in parallel, and the
    endpoints of the workspace whose calls a policy counts."""

    workspace: str
    experiment_ids: Sequence[str]
    endpoint_ids: Collection[str]


def _parts(policy: BudgetPolicy) -> Iterator[_Part]:
    """Yields where the traces of a policy's calls are, at least once for each workspace."""
    is_local = policy.target_scope in (WORKSPACE, ENDPOINT)
    names = [policy.workspace] if is_local else workspaces.names()
    for begin in range(0, len(names), _WORKSPACES_AT_ONCE):
        together = names[begin : begin + _WORKSPACES_AT_ONCE]
        reads = [partial(_experiments_by_endpoint, policy, name) for name in together]
        for workspace, endpoints in zip(together, table.parallel(reads), strict=True):
            experiment_ids = sorted(set(endpoints.values()))
            for first in range(0, max(1, len(experiment_ids)), pages.PAGES_AHEAD):
                page = experiment_ids[first : first + pages.PAGES_AHEAD]
                yield _Part(workspace, page, endpoints.keys())


def _experiments_by_endpoint(policy: BudgetPolicy, workspace: str) -> dict[str, str]:
    """Returns the endpoints of a workspace whose calls a policy counts, with the experiments of
    their traces."""
    return {
        endpoint_id: endpoint.experiment_id
        for endpoint_id, endpoint in configuration.read(workspace).endpoints.items()
        if endpoint.experiment_id is not None
        and (policy.target_scope != ENDPOINT or policy.target_value == endpoint_id)
    }


def _cost(policy: BudgetPolicy, trace: StoredTrace, endpoint_ids: Collection[str]) -> float:
    """Returns what a trace's spans cost if the trace is one of the gateway's that the policy
    counts, and 0 otherwise or if no call can cost that."""
    metadata = trace.document.texts("trace_metadata")
    if trace.info.given is not None or metadata.get(call_traces.ENDPOINT_ID) not in endpoint_ids:
        return 0.0
    if policy.target_scope == USER and metadata.get(call_traces.USERNAME) != policy.target_value:
        return 0.0
    span_facts = facts.parse(trace.info.facts)
    cost = span_facts.cost.get("total_cost", 0.0) if span_facts else 0.0
    return cost if 0.0 < cost <= MAX_DOLLARS else 0.0
