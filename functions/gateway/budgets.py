"""Creates, updates, lists and deletes budget policies of the AI gateway: how much its calls of
models for a scope, such as an endpoint or a user, may cost in a time window, and what then
happens."""

from __future__ import annotations

import math
from typing import Any, Final
from uuid import uuid4

from gateway import messages as m
from gateway.configuration_updates import not_found, require_endpoint
from gateway.pages_by_id import page
from mlcore import errors, ids
from mlcore.entities.gateway import ENDPOINT, GLOBAL, USER, BudgetPolicy
from mlcore.gateway import earlier_spending
from mlcore.gateway.budget_windows import window_containing
from mlcore.gateway.budgets import read_spending
from mlcore.http import Request
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import budgets, configuration
from mlcore.responses import gateway as responses

_SCOPES_WITH_TARGET: Final = (ENDPOINT, USER)
REPEATED_WITHIN_MS: Final = 900_000
"""A client repeats a request that failed within this time."""


def create_budget_policy(message: m.CreateGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    now, creator = ids.now_ms(), message.created_by or None
    policy = BudgetPolicy(
        budget_policy_id=f"bp-{uuid4().hex}",
        workspace=request.workspace,
        budget_unit=_check_specified("budget_unit", message.budget_unit),
        budget_amount=message.budget_amount,
        **_parse_duration(message.duration),
        target_scope=_check_specified("target_scope", message.target_scope),
        budget_action=_check_specified("budget_action", message.budget_action),
        target_value=message.target_value or None,
        created_by=creator,
        last_updated_by=creator,
        created_at=now,
        last_updated_at=now,
    )
    _check_target(policy, request)
    _check_endpoint(policy, request)
    _check_amount(policy)
    budgets.write(policy)
    earlier_spending.fill(policy, now)
    return {"budget_policy": responses.budget_policy(policy)}


def get_budget_policy(message: m.GetGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    policy = _get_policy(message.budget_policy_id, request)
    return {"budget_policy": responses.budget_policy(policy)}


def update_budget_policy(message: m.UpdateGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    """Changes a budget policy of the AI gateway. Omitted fields keep their value. If the scope
    changes, the former target (such as an endpoint) is removed unless the request names another."""
    changes: dict[str, Any] = {}
    if message.has("budget_unit"):
        changes["budget_unit"] = _check_specified("budget_unit", message.budget_unit)
    if message.has("duration"):
        changes |= _parse_duration(message.duration)
    if message.has("target_scope"):
        changes["target_scope"] = _check_specified("target_scope", message.target_scope)
    if message.has("budget_action"):
        changes["budget_action"] = _check_specified("budget_action", message.budget_action)
    if message.has("budget_amount"):
        changes["budget_amount"] = message.budget_amount
    target = message.target_value or None

    def attempt() -> dict[str, Any]:
        before = _get_policy(message.budget_policy_id, request)
        after = before._replace(**changes, last_updated_at=ids.now_ms())
        if message.has("target_value"):
            after = after._replace(target_value=target)
        elif after.target_scope != before.target_scope:
            after = after._replace(target_value=None)
        if message.has("updated_by") and message.updated_by:
            after = after._replace(last_updated_by=message.updated_by)
        if "target_scope" in changes or message.has("target_value"):
            _check_target(after, request)
        if target is not None:
            _check_endpoint(after, request)
        _check_amount(after)
        if _counts_the_same(before, after) and not _may_repeat(message, before, after):
            budgets.write(after)
        else:
            begin = after.last_updated_at
            counted = earlier_spending.counted(after, begin)
            budgets.write(after)
            earlier_spending.fill(after, begin, counted)
        return {"budget_policy": responses.budget_policy(after)}

    return retry_on_conflict("budget policy", attempt)


def delete_budget_policy(message: m.DeleteGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    budgets.delete(_get_policy(message.budget_policy_id, request))
    return {}


def list_budget_policies(message: m.ListGatewayBudgetPolicies, request: Request) -> dict[str, Any]:
    """Returns a page of the workspace's budget policies, ordered by id."""
    return page(
        "budget_policies",
        budgets.of_workspace(request.workspace),
        lambda policy: policy.budget_policy_id,
        responses.budget_policy,
        message,
    )


def list_budget_windows(message: m.EmptyRequest, request: Request) -> dict[str, Any]:
    """Returns the current time window of each budget policy of the workspace and of each global one
    of any workspace, with the amount spent in it."""
    now = ids.now_ms()
    policies = [
        policy
        for policy in budgets.find_all()
        if policy.target_scope == GLOBAL or policy.workspace == request.workspace
    ]
    shown = []
    for policy, spent in zip(policies, read_spending(policies, now), strict=True):
        start, end = window_containing(policy.duration_unit, policy.duration_value, now)
        shown.append(
            {
                "budget_policy_id": policy.budget_policy_id,
                "window_start_ms": start,
                "window_end_ms": end,
                "current_spend": spent,
            }
        )
    return {"windows": shown} if shown else {}


def _get_policy(budget_policy_id: str, request: Request) -> BudgetPolicy:
    policy = budgets.find(request.workspace, budget_policy_id)
    if policy is None:
        raise not_found("BudgetPolicy", budget_policy_id=budget_policy_id)
    return policy


def _counts_the_same(before: BudgetPolicy, after: BudgetPolicy) -> bool:
    """Whether a changed policy counts the same calls in the same windows as before."""
    return (before.target_scope, before.target_value, *_duration(before)) == (
        after.target_scope,
        after.target_value,
        *_duration(after),
    )


def _may_repeat(
    message: m.UpdateGatewayBudgetPolicy, before: BudgetPolicy, after: BudgetPolicy
) -> bool:
    """Whether a request names what a policy counts, as the last change of the policy, a short time
    ago, may have done: that one may have been interrupted before it added the earlier calls. If it
    was not, nothing is added again."""
    is_soon = after.last_updated_at - before.last_updated_at < REPEATED_WITHIN_MS
    return is_soon and any(map(message.has, ("duration", "target_scope", "target_value")))


def _duration(policy: BudgetPolicy) -> tuple[str, int]:
    return policy.duration_unit, policy.duration_value


def _check_specified(name: str, value: str | None) -> str:
    """Returns the value of an enum. Raises InvalidParameterValue if it is missing or
    UNSPECIFIED."""
    if value is None or value.endswith("UNSPECIFIED"):
        raise errors.InvalidParameterValue(f"Invalid {name}: 0")
    return value


def _parse_duration(duration: m.BudgetDuration | None) -> dict[str, Any]:
    unit = _check_specified("duration.unit", duration.unit if duration else None)
    value = duration.value if duration else 0
    if value <= 0:
        raise errors.InvalidParameterValue(
            f"duration.value must be a positive integer, got {value}"
        )
    return {"duration_unit": unit, "duration_value": value}


def _check_target(policy: BudgetPolicy, request: Request) -> None:
    """Checks that a budget policy has a target exactly if its scope needs one, and that a policy
    for a user is made only where authentication is on. Raises InvalidParameterValue otherwise."""
    scope = policy.target_scope
    if scope in _SCOPES_WITH_TARGET and not policy.target_value:
        raise errors.InvalidParameterValue(
            f"target_value is required when target_scope is {scope}."
        )
    if scope not in _SCOPES_WITH_TARGET and policy.target_value:
        raise errors.InvalidParameterValue(
            "target_value can only be set when target_scope is ENDPOINT or USER."
        )
    if scope == USER and request.access is None:
        raise errors.InvalidParameterValue(
            "USER-scoped budget policies require server authentication to be enabled. "
            "Without auth the gateway cannot attribute requests to a user, so the "
            "policy would never take effect."
        )


def _check_amount(policy: BudgetPolicy) -> None:
    """Checks that the amount of a budget policy is a number: no spending reaches NaN, so the policy
    would never take effect. Raises BadRequest, as MLflow's database does."""
    if math.isnan(policy.budget_amount):
        raise errors.BadRequest("budget_amount must be a number, got NaN.")


def _check_endpoint(policy: BudgetPolicy, request: Request) -> None:
    """Checks that the endpoint of a policy for an endpoint exists. Raises ResourceDoesNotExist
    otherwise; policies of other scopes always pass."""
    if policy.target_scope == ENDPOINT:
        require_endpoint(configuration.read(request.workspace), policy.target_value or "")
