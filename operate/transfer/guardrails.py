"""The AI gateway's guardrails, which endpoints have them, and its budget policies, from the server
to the table. All keep their ids."""

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
from mlcore.limits.evaluation.scorers import asking, endpoint_asked
from mlcore.repos.gateway import budgets, configuration
from mlcore.responses import gateway as responses
from mlcore.settle import settle
from operate.transfer import scorers
from operate.transfer.gateway import GATEWAY, Told, picked, there, times, writing
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json
from operate.transfer.source import known

POLICY: Final = "gateway budget policy"
GUARDRAIL: Final = "gateway guardrail"
USE: Final = "gateway guardrail of an endpoint"

_PAGE: Final = 100
_GUARDRAIL_OWN: Final = ("name", "stage", "action", "action_endpoint_id")
_BUDGET_OWN: Final = (
    *("budget_unit", "budget_amount", "duration", "target_scope", "budget_action"),
    "target_value",
)


def guardrails(told: Told, target_of: Callable[[str], str]) -> list[Item]:
    """None of a server before 3.12.

    Args:
        target_of: the product's id of an experiment of the server.
    """
    path = f"{GATEWAY}/guardrails/list"
    found = known(told.server.pages("GET", path, "guardrails", max_results=_PAGE))
    return [_guardrail(told, one, target_of) for one in found]


def _guardrail(told: Told, fields: Json, target_of: Callable[[str], str]) -> Item:
    """Endpoints that sanitize are told by their names."""
    workspace, guardrail_id = told.server.workspace, fields["guardrail_id"]
    scorer = _scorer(told, fields["scorer"], target_of)
    name = fields.get("action_endpoint_id") or None
    action_endpoint_id = None if name is None else told.endpoint_named(name)
    guardrail = Guardrail(
        guardrail_id=guardrail_id,
        name=fields["name"],
        scorer=scorer,
        stage=fields["stage"],
        action=fields["action"],
        action_endpoint_id=action_endpoint_id,
        **times(fields),
    )

    def want() -> Content:
        return _content(guardrail, configuration.read(workspace))

    def have() -> Content | None:
        held = configuration.read(workspace)
        found = held.guardrails.get(guardrail_id)
        return None if found is None else _content(found, held)

    def made(held: Configuration) -> Guardrail:
        found = held.guardrails.get(guardrail_id)
        return guardrail._replace(revision=0 if found is None else found.revision)

    return Item(GUARDRAIL, guardrail_id, want, have, writing(workspace, made))


def _scorer(told: Told, fields: Json, target_of: Callable[[str], str]) -> ScorerVersion:
    """A judge that asks an endpoint asks the one that stands for it."""
    version = scorers.version(fields, target_of(str(fields["experiment_id"])))
    data = json.loads(version.serialized_scorer)
    asked = endpoint_asked(data)
    if asked is None or told.ids.get(asked, asked) == asked:
        return version
    return version._replace(serialized_scorer=json.dumps(asking(data, told.ids[asked])))


def _content(guardrail: Guardrail, held: Configuration) -> Content:
    shown = responses.guardrail(guardrail, held)
    return {
        **picked(shown, _GUARDRAIL_OWN),
        "scorer": guardrail.scorer._asdict(),
        **times(shown),
    }


def uses(told: Told) -> list[Item]:
    """Which endpoint has which guardrail."""
    path = f"{GATEWAY}/guardrails/list-for-endpoint"
    return [
        _use(told, told.ids[one["endpoint_id"]], config)
        for one in told.endpoints
        for config in known(
            told.server.pages("GET", path, "configs", endpoint_id=one["endpoint_id"])
        )
    ]


def _use(told: Told, endpoint_id: str, fields: Json) -> Item:
    workspace = told.server.workspace
    use = GuardrailUse(
        fields["guardrail_id"],
        fields.get("execution_order"),
        int(fields["created_at"]),
        fields.get("created_by") or None,
    )

    def have() -> Content | None:
        endpoint = configuration.read(workspace).endpoints.get(endpoint_id)
        held = () if endpoint is None else endpoint.guardrails
        return next((one._asdict() for one in held if one[0] == use[0]), None)

    def made(held: Configuration) -> Endpoint:
        endpoint = there(held, endpoint_id)
        kept = (one for one in endpoint.guardrails if one[0] != use[0])
        return endpoint._replace(guardrails=(*kept, use))

    return Item(
        USE,
        use_identity(endpoint_id, use),
        use._asdict,
        have,
        writing(workspace, made),
    )


def use_identity(endpoint_id: str, use: GuardrailUse) -> str:
    return f"{endpoint_id}/{use.guardrail_id}"


def budget_policies(told: Told) -> list[Item]:
    """None of a server before 3.11. What was spent stays behind."""
    path = f"{GATEWAY}/budgets/list"
    found = known(told.server.pages("GET", path, "budget_policies", max_results=_PAGE))
    return [_budget_policy(told, one) for one in found]


def _budget_policy(told: Told, fields: Json) -> Item:
    workspace = told.server.workspace
    target = fields.get("target_value") or None
    if fields["target_scope"] == ENDPOINT and target is not None:
        target = told.ids.get(target, target)
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
        **times(fields),
    )

    def have() -> Content | None:
        found = budgets.find(workspace, policy.budget_policy_id)
        return None if found is None else _budget_content(found)

    def attempt() -> None:
        found = budgets.find(workspace, policy.budget_policy_id)
        budgets.write(policy._replace(revision=0 if found is None else found.revision))

    return Item(
        POLICY,
        policy.budget_policy_id,
        lambda: _budget_content(policy),
        have,
        lambda _want, _have: settle("budget policy", attempt),
    )


def _budget_content(policy: BudgetPolicy) -> Content:
    shown = responses.budget_policy(policy)
    return {**picked(shown, _BUDGET_OWN), **times(shown)}
