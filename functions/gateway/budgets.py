"""The rules of budget policies: how much may be spent in how long, by whom, and what then."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from gateway import messages as m
from gateway.pages import page
from gateway.parts import endpoint as endpoint_there
from gateway.parts import missing
from mlcore import errors, ids
from mlcore.entities.gateway import ENDPOINT, GLOBAL, USER, BudgetPolicy
from mlcore.gateway.budgets import spent_of
from mlcore.gateway.windows import window
from mlcore.http import Request
from mlcore.repos.gateway import budgets, configuration
from mlcore.responses import gateway as responses
from mlcore.settle import settle

_TARGETED: Final = (ENDPOINT, USER)


def create_budget_policy(message: m.CreateGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    now, creator = ids.now_ms(), message.created_by or None
    made = BudgetPolicy(
        budget_policy_id=f"bp-{uuid4().hex}",
        workspace=request.workspace,
        budget_unit=_known("budget_unit", message.budget_unit),
        budget_amount=message.budget_amount,
        **_duration(message.duration),
        target_scope=_known("target_scope", message.target_scope),
        budget_action=_known("budget_action", message.budget_action),
        target_value=message.target_value or None,
        created_by=creator,
        last_updated_by=creator,
        created_at=now,
        last_updated_at=now,
    )
    _check_target(made, request)
    _check_endpoint(made, request)
    budgets.write(made)
    return {"budget_policy": responses.budget_policy(made)}


def get_budget_policy(message: m.GetGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    policy = _there(message.budget_policy_id, request)
    return {"budget_policy": responses.budget_policy(policy)}


def update_budget_policy(message: m.UpdateGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    """What is not said stays; a target stays only as long as its scope does."""
    changes: dict[str, Any] = {}
    if message.has("budget_unit"):
        changes["budget_unit"] = _known("budget_unit", message.budget_unit)
    if message.has("duration"):
        changes |= _duration(message.duration)
    if message.has("target_scope"):
        changes["target_scope"] = _known("target_scope", message.target_scope)
    if message.has("budget_action"):
        changes["budget_action"] = _known("budget_action", message.budget_action)
    if message.has("budget_amount"):
        changes["budget_amount"] = message.budget_amount
    target = message.target_value or None

    def attempt() -> dict[str, Any]:
        before = _there(message.budget_policy_id, request)
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
        budgets.write(after)
        return {"budget_policy": responses.budget_policy(after)}

    return settle("budget policy", attempt)


def delete_budget_policy(message: m.DeleteGatewayBudgetPolicy, request: Request) -> dict[str, Any]:
    budgets.delete(_there(message.budget_policy_id, request))
    return {}


def list_budget_policies(message: m.ListGatewayBudgetPolicies, request: Request) -> dict[str, Any]:
    """By id."""
    return page(
        "budget_policies",
        budgets.of_workspace(request.workspace),
        lambda policy: policy.budget_policy_id,
        responses.budget_policy,
        message,
    )


def list_budget_windows(message: m.Nothing, request: Request) -> dict[str, Any]:
    """The current windows of the workspace's policies, and of global ones wherever they were
    made, and what is spent in them."""
    now = ids.now_ms()
    policies = [
        policy
        for policy in budgets.find_all()
        if policy.target_scope == GLOBAL or policy.workspace == request.workspace
    ]
    shown = []
    for policy, spent in zip(policies, spent_of(policies, now), strict=True):
        start, end = window(policy.duration_unit, policy.duration_value, now)
        shown.append(
            {
                "budget_policy_id": policy.budget_policy_id,
                "window_start_ms": start,
                "window_end_ms": end,
                "current_spend": spent,
            }
        )
    return {"windows": shown} if shown else {}


def _there(budget_policy_id: str, request: Request) -> BudgetPolicy:
    policy = budgets.find(request.workspace, budget_policy_id)
    if policy is None:
        raise missing("BudgetPolicy", budget_policy_id=budget_policy_id)
    return policy


def _known(name: str, value: str | None) -> str:
    """Raises InvalidParameterValue: the enum's value that says nothing."""
    if value is None or value.endswith("UNSPECIFIED"):
        raise errors.InvalidParameterValue(f"Invalid {name}: 0")
    return value


def _duration(duration: m.BudgetDuration | None) -> dict[str, Any]:
    unit = _known("duration.unit", duration.unit if duration else None)
    value = duration.value if duration else 0
    if value <= 0:
        raise errors.InvalidParameterValue(
            f"duration.value must be a positive integer, got {value}"
        )
    return {"duration_unit": unit, "duration_value": value}


def _check_target(policy: BudgetPolicy, request: Request) -> None:
    """Raises InvalidParameterValue: whom it is about is not said, or to no purpose."""
    scope = policy.target_scope
    if scope in _TARGETED and not policy.target_value:
        raise errors.InvalidParameterValue(
            f"target_value is required when target_scope is {scope}."
        )
    if scope not in _TARGETED and policy.target_value:
        raise errors.InvalidParameterValue(
            "target_value can only be set when target_scope is ENDPOINT or USER."
        )
    if scope == USER and request.access is None:
        raise errors.InvalidParameterValue(
            "USER-scoped budget policies require server authentication to be enabled. "
            "Without auth the gateway cannot attribute requests to a user, so the "
            "policy would never take effect."
        )


def _check_endpoint(policy: BudgetPolicy, request: Request) -> None:
    """Raises ResourceDoesNotExist."""
    if policy.target_scope == ENDPOINT:
        endpoint_there(configuration.read(request.workspace), policy.target_value or "")
