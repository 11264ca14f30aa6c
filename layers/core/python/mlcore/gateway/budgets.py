"""Budgets: who may still call, and what a call has cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mlcore.entities.gateway import ENDPOINT, GLOBAL, USER, BudgetPolicy
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway.windows import window
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos.gateway import budgets, spending

REJECT: Final = "REJECT"


class Payer(NamedTuple):
    """Whose call it is, in the words of budgets."""

    workspace: str
    endpoint_id: str
    username: str | None


def applying(payer: Payer) -> list[BudgetPolicy]:
    """The policies that a call counts in; one consistent Query."""
    return [policy for policy in budgets.find_all() if _applies(policy, payer)]


def check(policies: Sequence[BudgetPolicy]) -> None:
    """One BatchGetItem, where any of them may end calls.

    Raises:
        GatewayCallFailed: one of them is spent; 429.
    """
    ending, now = [policy for policy in policies if policy.budget_action == REJECT], now_ms()
    for policy, spent in zip(ending, spent_of(ending, now), strict=True):
        if spent >= policy.budget_amount:
            raise GatewayCallFailed(429, _refusal(policy, now))


def spent_of(policies: Sequence[BudgetPolicy], now: int) -> list[float]:
    """US dollars in the windows of a moment, which is in ms."""
    if not policies:
        return []
    return spending.read(
        [(policy.budget_policy_id, _window(policy, now)[0]) for policy in policies]
    )


def count(policies: Sequence[BudgetPolicy], dollars: float) -> None:
    """Adds what a call has cost. The caller has the answer, so nothing fails for it: what could
    not be counted is told by the log."""
    now = now_ms()
    for policy in policies:
        start, end = _window(policy, now)
        try:
            spending.add((policy.budget_policy_id, start), end, dollars)
        except MlflowError as error:
            about = {"budget_policy_id": policy.budget_policy_id, "dollars": dollars}
            logger.error("a cost was not counted", extra={**about, "error": error.error_code})


def _applies(policy: BudgetPolicy, payer: Payer) -> bool:
    if policy.target_scope == GLOBAL:
        return True
    if policy.target_scope == ENDPOINT:
        return policy.target_value == payer.endpoint_id
    if policy.target_scope == USER:
        return policy.target_value is not None and policy.target_value == payer.username
    return policy.workspace == payer.workspace


def _window(policy: BudgetPolicy, now: int) -> tuple[int, int]:
    return window(policy.duration_unit, policy.duration_value, now)


def _refusal(policy: BudgetPolicy, now: int) -> str:
    unit = policy.duration_unit.lower()
    if policy.duration_value == 1:
        unit = unit.removesuffix("s")
    _, end = _window(policy, now)
    resets = datetime.fromtimestamp(end / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"Budget limit exceeded. Limit: ${policy.budget_amount:.2f} USD per "
        f"{policy.duration_value} {unit}. Budget resets at {resets}. Request rejected."
    )
