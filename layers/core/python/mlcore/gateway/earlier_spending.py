"""Adds to a budget policy that is created or changed in the middle of its window the cost of the
calls earlier in that window.

The calls are found by their traces, as in MLflow's gateway. So calls through endpoints that do not
track usage, or that were deleted since, do not count.

Users may write traces into the experiment of an endpoint, too. A trace counts only if no client
has reported its info, because such a report could contain the gateway's metadata, too. Clients may
still have sent spans to the trace, so the cost counted for one trace has a limit.
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
from mlcore.providers.token_counts import MAX_COUNT
from mlcore.repos.gateway import configuration, spending
from mlcore.repos.gateway.spending import WindowSpending
from mlcore.repos.traces import traces_by_time
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.traces.traces_by_time import Window
from mlcore.repos.workspaces import workspaces
from mlcore.spans import trace_facts

MAX_TRACES: Final = 5000
"""Maximum number of traces that are read; within a group of experiments (:class:`_Part`) the newest
first."""
MAX_SECONDS: Final = 5.0
MAX_DOLLARS: Final = 2 * MAX_COUNT * 1_000 / 1_000_000
"""Upper limit of the cost of one call, 33,554 US dollars: the maximum of input and output tokens,
at 1,000 dollars per million. The most expensive model in the price list costs 600. A trace with a
higher cost does not count."""
_WORKSPACES_AT_ONCE: Final = 20
_FIRST_PAGE: Final = 100
"""Traces of each experiment in the first page that is read."""
_ATTEMPTS: Final = 3


def counted(policy: BudgetPolicy, now: int) -> WindowSpending:
    """Returns the cost that the budget policy's current window has counted so far, and how much of
    it calls before the policy was written have cost, in billionths of a US dollar; one consistent
    read.

    Args:
        now: ms since 1970; it selects the window.
    """
    return spending.counted((policy.budget_policy_id, _window(policy, now)[0]))


def fill(policy: BudgetPolicy, begin: int, before: WindowSpending = spending.NOTHING) -> None:
    """Adds to the current window of a budget policy the cost of earlier calls that the window has
    not counted yet. A repeated call adds nothing. The policy is already written, so an error is
    logged and not raised.

    Args:
        begin: when the policy was written, in ms since 1970. Calls before this time are added;
            later calls count themselves.
        before: what the window had counted before the policy was written (:func:`counted`).
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
    """Returns the cost in US dollars of the calls in the window that the policy counts, and whether
    all of their traces could be read."""
    ends_at = time.monotonic() + MAX_SECONDS
    dollars, remaining = 0.0, MAX_TRACES
    for part in _parts(policy):
        if time.monotonic() > ends_at:
            return dollars, False
        if not part.experiment_ids:
            continue
        for stored in traces_by_time.newest_first(
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
    """Yields the experiments that hold the traces of a policy's calls, in groups; at least one
    group for each workspace."""
    is_local = policy.target_scope in (WORKSPACE, ENDPOINT)
    names = [policy.workspace] if is_local else workspaces.names()
    for begin in range(0, len(names), _WORKSPACES_AT_ONCE):
        together = names[begin : begin + _WORKSPACES_AT_ONCE]
        reads = [partial(_experiments_by_endpoint, policy, name) for name in together]
        for workspace, endpoints in zip(together, table.parallel(reads), strict=True):
            experiment_ids = sorted(set(endpoints.values()))
            for first in range(0, max(1, len(experiment_ids)), traces_by_time.PAGES_AHEAD):
                page = experiment_ids[first : first + traces_by_time.PAGES_AHEAD]
                yield _Part(workspace, page, endpoints.keys())


def _experiments_by_endpoint(policy: BudgetPolicy, workspace: str) -> dict[str, str]:
    """Returns by endpoint id the experiment of the endpoint's traces, for the endpoints of a
    workspace whose calls a policy counts."""
    return {
        endpoint_id: endpoint.experiment_id
        for endpoint_id, endpoint in configuration.read(workspace).endpoints.items()
        if endpoint.experiment_id is not None
        and (policy.target_scope != ENDPOINT or policy.target_value == endpoint_id)
    }


def _cost(policy: BudgetPolicy, trace: StoredTrace, endpoint_ids: Collection[str]) -> float:
    """Returns the cost in US dollars of a trace's spans. Returns 0 if the trace is no call that the
    policy counts, or if its cost exceeds MAX_DOLLARS."""
    metadata = trace.document.texts("trace_metadata")
    if trace.info.given is not None or metadata.get(call_traces.ENDPOINT_ID) not in endpoint_ids:
        return 0.0
    if policy.target_scope == USER and metadata.get(call_traces.USERNAME) != policy.target_value:
        return 0.0
    span_facts = trace_facts.parse(trace.info.facts)
    cost = span_facts.cost.get("total_cost", 0.0) if span_facts else 0.0
    return cost if 0.0 < cost <= MAX_DOLLARS else 0.0
