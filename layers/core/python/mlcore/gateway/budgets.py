"""Budgets of the AI gateway: refuses calls once a budget is spent, and counts each call's cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mlcore.entities.gateway import ENDPOINT, GLOBAL, USER, BudgetPolicy
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway.budget_windows import window_containing
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos.gateway import budgets, spending
from mlcore.webhooks import announcement

ALERT: Final = "ALERT"
REJECT: Final = "REJECT"


class Payer(NamedTuple):
    """Who pays for a call of the AI gateway: workspace, endpoint and user. They determine the
    budgets that the call counts to."""

    workspace: str
    endpoint_id: str
    username: str | None


def applicable(payer: Payer) -> list[BudgetPolicy]:
    """Returns the budget policies that count the cost of this payer's gateway calls; one consistent
    Query per MB of all policies."""
    return [policy for policy in budgets.find_all() if _applies(policy, payer)]


def check(policies: Sequence[BudgetPolicy]) -> None:
    """Checks that none of the budgets that refuse calls (``REJECT``) is spent. Reads their spending
    with one BatchGetItem per hundred; no read if there are none.

    Raises:
        GatewayCallFailed: a budget is spent; status 429, with the seconds until its window ends.
    """
    rejecting, now = [policy for policy in policies if policy.budget_action == REJECT], now_ms()
    for policy, spent in zip(rejecting, read_spending(rejecting, now), strict=True):
        if spent >= policy.budget_amount:
            _, end = _window(policy, now)
            seconds = str(math.ceil((end - now) / 1000))
            raise GatewayCallFailed(429, _refusal_message(policy, now), seconds)


def read_spending(policies: Sequence[BudgetPolicy], now: int) -> list[float]:
    """Returns the US dollars spent under each budget policy in its current window.

    Args:
        now: ms since 1970; it selects the window.
    """
    if not policies:
        return []
    return spending.read(
        [(policy.budget_policy_id, _window(policy, now)[0]) for policy in policies]
    )


def add_cost(policies: Sequence[BudgetPolicy], dollars: float, workspace: str) -> None:
    """Adds the cost of a call to its budgets. Budgets that alert and are now exceeded send an event
    to the webhooks of the call's workspace, once in each window.

    The caller has the answer already, so an MlflowError is logged and does not fail the call.
    """
    now = now_ms()
    for policy in policies:
        start, end = _window(policy, now)
        window = (policy.budget_policy_id, start)
        try:
            spent, announced = spending.add(window, end, dollars)
            if policy.budget_action == ALERT and spent >= policy.budget_amount and not announced:
                event = announcement.budget_exceeded(policy, spent, start, workspace)
                spending.announce_exceeded(window, event)
        except MlflowError as error:
            context = {"budget_policy_id": policy.budget_policy_id, "dollars": dollars}
            logger.error(
                "the cost of a call was not added to a budget",
                extra={**context, "error": error.error_code},
            )


def _applies(policy: BudgetPolicy, payer: Payer) -> bool:
    if policy.target_scope == GLOBAL:
        return True
    if policy.target_scope == ENDPOINT:
        return policy.target_value == payer.endpoint_id
    if policy.target_scope == USER:
        return policy.target_value is not None and policy.target_value == payer.username
    return policy.workspace == payer.workspace


def _window(policy: BudgetPolicy, now: int) -> tuple[int, int]:
    return window_containing(policy.duration_unit, policy.duration_value, now)


def _refusal_message(policy: BudgetPolicy, now: int) -> str:
    unit = policy.duration_unit.lower()
    if policy.duration_value == 1:
        unit = unit.removesuffix("s")
    _, end = _window(policy, now)
    resets = datetime.fromtimestamp(end / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"Budget limit exceeded. Limit: ${policy.budget_amount:.2f} USD per "
        f"{policy.duration_value} {unit}. Budget resets at {resets}. Request rejected."
    )
