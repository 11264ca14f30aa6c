"""Who may do what with the gateway's configuration: each request by users whose grants differ,
against stock."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.differential.auth_pair import Both, v3
from tests.differential.rest import Call, Ref, Reply, Side
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
Login = tuple[str, str]
LEVELS = ("READ", "USE", "EDIT", "MANAGE", "DENY")
KINDS = ("gateway_secret", "gateway_model_definition", "gateway_endpoint")
IDS = r"\b(s|d|e|m|bp|gr)-[0-9a-f]{32}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def _plain(reply: Reply) -> tuple[int, str]:
    """Without times, ids and the numbers of experiments."""
    text = re.sub(IDS, "<id>", repr(_sorted(reply.body)))
    text = re.sub(r"'experiment_id': '?\d+'?", "<experiment>", text)
    return reply.status, re.sub(r"\b1[0-9]{12}\b", "<time>", text)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted((_sorted(part) for part in value), key=repr)
    return value


def gateway(method: str, path: str, /, **fields: Any) -> Call:
    return v3(method, f"gateway/{path}", fields)


def made(kind: str, id_field: str, path: str, /, **fields: Any) -> Call:
    return gateway("POST", path, **fields)._replace(saves={kind: id_field})


def _linked(definition: str, linkage: str = "PRIMARY") -> dict[str, Any]:
    return {"model_definition_id": Ref(definition), "linkage_type": linkage}


def _everything(name: str) -> list[Call]:
    """What the owner makes."""
    model = {"secret_id": Ref("secret"), "provider": "openai", "model_name": "gpt-4o"}
    id_field = "model_definition.model_definition_id"
    return [
        made(
            "secret",
            "secret.secret_id",
            "secrets/create",
            secret_name=name,
            secret_value={"api_key": "sk-abcdefghijkl"},
        ),
        made("definition", id_field, "model-definitions/create", name=name, **model),
        made("spare", id_field, "model-definitions/create", name=f"{name}-spare", **model),
        made(
            "endpoint",
            "endpoint.endpoint_id",
            "endpoints/create",
            name=name,
            model_configs=[_linked("definition")],
            usage_tracking=False,
        ),
    ]


def _requests(name: str) -> list[Call]:
    """Reads first, then what changes, at last what takes away."""
    secret, endpoint = {"secret_id": Ref("secret")}, {"endpoint_id": Ref("endpoint")}
    definition = {"model_definition_id": Ref("definition")}
    bound = {"resource_type": "scorer", "resource_id": "r"}
    model = {"provider": "openai", "model_name": "gpt-4o"}
    return [
        gateway("GET", "secrets/get", **secret),
        gateway("GET", "model-definitions/get", **definition),
        gateway("GET", "model-definitions/list", **secret),
        gateway("GET", "endpoints/get", **endpoint),
        gateway("GET", "endpoints/get", name=name),
        gateway("GET", "endpoints/get", name="nobody"),
        gateway("GET", "endpoints/bindings/list", **endpoint),
        gateway("GET", "endpoints/bindings/list"),
        gateway("GET", "guardrails/list"),
        gateway("GET", "guardrails/list-for-endpoint", **endpoint),
        gateway("GET", "budgets/get", budget_policy_id="bp-0"),
        gateway("POST", "budgets/create", budget_unit="USD"),
        gateway("POST", "budgets/update", budget_policy_id="bp-0"),
        gateway("DELETE", "budgets/delete", budget_policy_id="bp-0"),
        gateway("POST", "secrets/update", **secret, auth_config={"region": "x"}),
        gateway("POST", "model-definitions/create", name=f"{name}-own", **secret, **model),
        gateway("POST", "model-definitions/update", **definition, name=f"{name}-2"),
        gateway("POST", "model-definitions/update", **definition, **secret),
        gateway(
            "POST",
            "endpoints/create",
            name=f"{name}-own",
            model_configs=[_linked("definition")],
            usage_tracking=False,
        ),
        gateway("POST", "endpoints/update", **endpoint, name=f"{name}-2"),
        gateway("POST", "endpoints/update", **endpoint, model_configs=[_linked("spare")]),
        gateway("POST", "endpoints/update", **endpoint, experiment_id="0"),
        gateway(
            "POST",
            "endpoints/models/attach",
            **endpoint,
            model_config=_linked("definition", "FALLBACK"),
        ),
        gateway("POST", "endpoints/models/detach", **endpoint, **definition),
        gateway("POST", "endpoints/set-tag", **endpoint, key="k", value="v"),
        gateway("DELETE", "endpoints/delete-tag", **endpoint, key="k"),
        gateway("POST", "endpoints/bindings/create", **endpoint, **bound),
        gateway("DELETE", "endpoints/bindings/delete", **endpoint, **bound),
        gateway("POST", "guardrails/add-to-endpoint", **endpoint, guardrail_id="gr-0"),
        gateway("POST", "secrets/create", secret_name=f"{name}-own", secret_value={"a": "b"}),
        gateway("DELETE", "endpoints/delete", **endpoint),
        gateway("DELETE", "model-definitions/delete", model_definition_id=Ref("spare")),
        gateway("DELETE", "secrets/delete", **secret),
        gateway("POST", "endpoints/update", endpoint_id="e-0"),
        gateway("GET", "secrets/get", secret_id="s-0"),
        gateway("GET", "endpoints/list"),
        gateway("GET", "secrets/list"),
        gateway("GET", "model-definitions/list"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_rights(guarded: list[Side], kind: str) -> None:
    """Grants on one kind; what is not granted is readable."""
    both = Both(guarded)
    owner, *others = both.users("owner", *LEVELS, "nobody")
    differences = []

    def compare(login: Login, call: Call) -> None:
        stock, ours = map(_plain, both.replies(login, call))
        same = stock == ours or (stock[0] >= 500 and ours[0] == 400 and "INVALID_STATE" in ours[1])
        if not same:
            differences.append(f"{login[0]}: {call}\n  {stock}\n  {ours}")

    for number, other in enumerate(others):
        name = f"g-{both.name}-{number}"
        for call in _everything(name):
            compare(owner, call)
        if number < len(LEVELS):
            held = {"gateway_secret": "secret", "gateway_model_definition": "definition"}
            grant = {
                "username": other[0],
                "resource_type": kind,
                "resource_id": Ref(held.get(kind, "endpoint")),
                "permission": LEVELS[number],
            }
            replies = both.replies(ADMIN, v3("POST", "users/permissions/grant", grant))
            assert [reply.status for reply in replies] == [200, 200], replies
        for call in _requests(name):
            compare(other, call)
        for call in (
            gateway("DELETE", "endpoints/delete", endpoint_id=Ref("endpoint")),
            gateway("GET", "endpoints/list"),
            gateway("GET", "model-definitions/list"),
        ):
            compare(owner, call)
    both.check()
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
