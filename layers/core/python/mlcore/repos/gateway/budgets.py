"""Budget policies (limits of the spending on model calls): one item each, all workspaces in one
partition, because a global policy applies in every workspace. All reads are strongly consistent."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.table import Put, table
from mlcore.entities.gateway import BudgetPolicy
from mlcore.ids import now_ms
from mlcore.models.gateway import GatewayBudget
from mlcore.repos.workspaces import guarded_writes


def find(workspace: str, budget_policy_id: str) -> BudgetPolicy | None:
    """Returns a budget policy; None also if it belongs to another workspace. One consistent
    GetItem."""
    raw = table.get(keys.gateway_budget(budget_policy_id))
    policy = None if raw is None else _policy(raw)
    return policy if policy is not None and policy.workspace == workspace else None


def find_all() -> list[BudgetPolicy]:
    """Returns the budget policies of all workspaces, ordered by id; one Query per MB."""
    pk = keys.gateway_budget("").pk
    return [_policy(raw) for raw in table.query_all(pk, prefix=keys.gateway_budget_prefix())]


def of_workspace(workspace: str) -> list[BudgetPolicy]:
    return [policy for policy in find_all() if policy.workspace == workspace]


def write(policy: BudgetPolicy) -> None:
    """Writes a new or changed budget policy of the AI gateway.

    Raises:
        WriteConflict: the policy was changed or deleted since it was read.
        ResourceDoesNotExist: the policy is new and its workspace was deleted.
    """
    unchanged = ConditionExpression()
    if policy.revision:
        unchanged.require_equal(GatewayBudget.version, policy.revision)
    else:
        unchanged.require_absent(GatewayBudget.PK)
    guarded_writes.write(
        [Put(_item(policy), unchanged)], creates_in=None if policy.revision else policy.workspace
    )


def delete(policy: BudgetPolicy) -> None:
    """Deletes a budget policy of the AI gateway. Idempotent."""
    table.delete(keys.gateway_budget(policy.budget_policy_id))


def _item(policy: BudgetPolicy) -> Raw:
    key = keys.gateway_budget(policy.budget_policy_id)
    item = GatewayBudget(
        PK=key.pk,
        SK=key.sk,
        budget_policy_id=policy.budget_policy_id,
        workspace=policy.workspace,
        budget_unit=policy.budget_unit,
        budget_amount=policy.budget_amount,
        duration_unit=policy.duration_unit,
        duration_value=policy.duration_value,
        target_scope=policy.target_scope,
        budget_action=policy.budget_action,
        target_value=policy.target_value,
        created_by=policy.created_by,
        last_updated_by=policy.last_updated_by,
        created_at=policy.created_at,
        last_updated_at=policy.last_updated_at,
        version=policy.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _policy(raw: Raw) -> BudgetPolicy:
    item = GatewayBudget.of(raw)
    return BudgetPolicy(
        item.budget_policy_id,
        item.workspace,
        item.budget_unit,
        item.budget_amount,
        item.duration_unit,
        item.duration_value,
        item.target_scope,
        item.budget_action,
        item.target_value,
        item.created_by,
        item.last_updated_by,
        item.created_at,
        item.last_updated_at,
        item.version,
    )
