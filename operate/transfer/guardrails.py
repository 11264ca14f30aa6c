"""Transfers the AI gateway's guardrails, their assignment to endpoints, and budget policies. All
keep their ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import (
    ENDPOINT,
    BudgetPolicy,
    Configuration,
    Endpoint,
    Guardrail,
    GuardrailUse,
)
from mlcore.limits.evaluation.judge_endpoints import judge_endpoint, with_endpoint
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import budgets, configuration
from mlcore.responses import gateway as responses
from operate.transfer import scorers
from operate.transfer.gateway import (
    GATEWAY,
    GatewaySnapshot,
    audit_fields,
    existing_endpoint,
    part_writer,
    selected_fields,
)
from operate.transfer.mlflow_client import Json
from operate.transfer.source_reader import empty_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem

POLICY: Final = "gateway budget policy"
GUARDRAIL: Final = "gateway guardrail"
USE: Final = "gateway guardrail of an endpoint"

_PAGE: Final = 100
_GUARDRAIL_OWN: Final = ("name", "stage", "action", "action_endpoint_id")
_BUDGET_OWN: Final = (
    *("budget_unit", "budget_amount", "duration", "target_scope", "budget_action"),
    "target_value",
)


def guardrails(snapshot: GatewaySnapshot, target_of: Callable[[str], str]) -> list[TransferItem]:
    """Returns the items that transfer the gateway's guardrails from an MLflow server to this
    product; none for a server before 3.12.

    Args:
        target_of: returns this product's id of an experiment, given the server's id.
    """
    path = f"{GATEWAY}/guardrails/list"
    listed = empty_if_unsupported(
        snapshot.server.pages("GET", path, "guardrails", max_results=_PAGE)
    )
    return [_guardrail(snapshot, fields, target_of) for fields in listed]


def _guardrail(
    snapshot: GatewaySnapshot, fields: Json, target_of: Callable[[str], str]
) -> TransferItem:
    """Returns the item that transfers a guardrail. The server names the guardrail's sanitizing
    endpoint by its name, the table by its id."""
    workspace, guardrail_id = snapshot.server.workspace, fields["guardrail_id"]
    scorer = _scorer(snapshot, fields["scorer"], target_of)
    name = fields.get("action_endpoint_id") or None
    action_endpoint_id = None if name is None else snapshot.endpoint_named(name)
    guardrail = Guardrail(
        guardrail_id=guardrail_id,
        name=fields["name"],
        scorer=scorer,
        stage=fields["stage"],
        action=fields["action"],
        action_endpoint_id=action_endpoint_id,
        **audit_fields(fields),
    )

    def want() -> Content:
        return _content(guardrail, configuration.read(workspace))

    def have() -> Content | None:
        held = configuration.read(workspace)
        stored = held.guardrails.get(guardrail_id)
        return None if stored is None else _content(stored, held)

    def made(held: Configuration) -> Guardrail:
        stored = held.guardrails.get(guardrail_id)
        return guardrail._replace(revision=0 if stored is None else stored.revision)

    return TransferItem(GUARDRAIL, guardrail_id, want, have, part_writer(workspace, made))


def _scorer(
    snapshot: GatewaySnapshot, fields: Json, target_of: Callable[[str], str]
) -> ScorerVersion:
    """Returns the guardrail's scorer, with the table's id of the endpoint that its judge calls."""
    version = scorers.version(fields, target_of(str(fields["experiment_id"])))
    data = json.loads(version.serialized_scorer)
    endpoint = judge_endpoint(data)
    if endpoint is None or snapshot.ids.get(endpoint, endpoint) == endpoint:
        return version
    return version._replace(
        serialized_scorer=json.dumps(with_endpoint(data, snapshot.ids[endpoint]))
    )


def _content(guardrail: Guardrail, held: Configuration) -> Content:
    shown = responses.guardrail(guardrail, held)
    return {
        **selected_fields(shown, _GUARDRAIL_OWN),
        "scorer": guardrail.scorer._asdict(),
        **audit_fields(shown),
    }


def uses(snapshot: GatewaySnapshot) -> list[TransferItem]:
    """Returns a TransferItem for each assignment of a guardrail to an endpoint of the source
    server."""
    path = f"{GATEWAY}/guardrails/list-for-endpoint"
    return [
        _use(snapshot, snapshot.ids[endpoint["endpoint_id"]], config)
        for endpoint in snapshot.endpoints
        for config in empty_if_unsupported(
            snapshot.server.pages("GET", path, "configs", endpoint_id=endpoint["endpoint_id"])
        )
    ]


def _use(snapshot: GatewaySnapshot, endpoint_id: str, fields: Json) -> TransferItem:
    workspace = snapshot.server.workspace
    use = GuardrailUse(
        fields["guardrail_id"],
        fields.get("execution_order"),
        int(fields["created_at"]),
        fields.get("created_by") or None,
    )

    def have() -> Content | None:
        endpoint = configuration.read(workspace).endpoints.get(endpoint_id)
        held = () if endpoint is None else endpoint.guardrails
        return next((held_use._asdict() for held_use in held if held_use[0] == use[0]), None)

    def made(held: Configuration) -> Endpoint:
        endpoint = existing_endpoint(held, endpoint_id)
        kept = (guardrail for guardrail in endpoint.guardrails if guardrail[0] != use[0])
        return endpoint._replace(guardrails=(*kept, use))

    return TransferItem(
        USE,
        use_identity(endpoint_id, use),
        use._asdict,
        have,
        part_writer(workspace, made),
    )


def use_identity(endpoint_id: str, use: GuardrailUse) -> str:
    return f"{endpoint_id}/{use.guardrail_id}"


def budget_policies(snapshot: GatewaySnapshot) -> list[TransferItem]:
    """Returns one transfer item for each budget policy of the source server's AI gateway; none for
    a server before 3.11. Spent amounts are not transferred."""
    path = f"{GATEWAY}/budgets/list"
    listed_policies = empty_if_unsupported(
        snapshot.server.pages("GET", path, "budget_policies", max_results=_PAGE)
    )
    return [_budget_policy(snapshot, policy) for policy in listed_policies]


def _budget_policy(snapshot: GatewaySnapshot, fields: Json) -> TransferItem:
    workspace = snapshot.server.workspace
    target = fields.get("target_value") or None
    if fields["target_scope"] == ENDPOINT and target is not None:
        target = snapshot.ids.get(target, target)
    policy = BudgetPolicy(
        budget_policy_id=fields["budget_policy_id"],
        workspace=workspace,
        budget_unit=fields["budget_unit"],
        budget_amount=fields["budget_amount"],
        duration_unit=fields["duration"]["unit"],
        duration_value=int(fields["duration"]["value"]),
        target_scope=fields["target_scope"],
        budget_action=fields["budget_action"],
        target_value=target,
        **audit_fields(fields),
    )

    def have() -> Content | None:
        existing = budgets.find(workspace, policy.budget_policy_id)
        return None if existing is None else _budget_content(existing)

    def attempt() -> None:
        existing = budgets.find(workspace, policy.budget_policy_id)
        budgets.write(policy._replace(revision=0 if existing is None else existing.revision))

    return TransferItem(
        POLICY,
        policy.budget_policy_id,
        lambda: _budget_content(policy),
        have,
        lambda _want, _have: retry_on_conflict("budget policy", attempt),
    )


def _budget_content(policy: BudgetPolicy) -> Content:
    shown = responses.budget_policy(policy)
    return {**selected_fields(shown, _BUDGET_OWN), **audit_fields(shown)}
