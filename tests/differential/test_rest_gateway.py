"""The gateway's configuration: secrets, models, endpoints, budgets, guardrails, judges, and what is
refused of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref

pytestmark = pytest.mark.e2e
ROOT = "/api/3.0/mlflow/gateway/"
LENIENT = frozenset({"partial parse", "list as body"})
PRIMARY, FALLBACK = "PRIMARY", "FALLBACK"
LISTS = {
    "guardrails": ("guardrails", "guardrail_id"),
    "endpoints": ("endpoints", "endpoint_id"),
    "model-definitions": ("model_definitions", "model_definition_id"),
    "secrets": ("secrets", "secret_id"),
    "budgets": ("budget_policies", "budget_policy_id"),
}


def post(path: str, /, saves: str = "", **body: Any) -> Call:
    where = {saves.split("=", maxsplit=1)[0]: saves.split("=")[1]} if saves else None
    return Call("POST", ROOT + path, body, saves=where, permits=LENIENT)


def delete(path: str, /, **body: Any) -> Call:
    return Call("DELETE", ROOT + path, body, permits=LENIENT)


def patch(path: str, /, **body: Any) -> Call:
    return Call("PATCH", ROOT + path, body, permits=LENIENT)


def read(path: str, /, **query: Any) -> Call:
    return Call("GET", ROOT + path, query=query or None, permits=LENIENT)


def secret(saved: str = "secret", **more: Any) -> Call:
    body = {"secret_name": name(), "secret_value": {"api_key": "sk-abcdefghijkl"}, **more}
    return post("secrets/create", f"{saved}=secret.secret_id", **body)


def definition(saved: str = "definition", **more: Any) -> Call:
    body = {
        "name": name(),
        "secret_id": Ref("secret"),
        "provider": "openai",
        "model_name": "gpt-4o",
    }
    place = f"{saved}=model_definition.model_definition_id"
    return post("model-definitions/create", place, **{**body, **more})


def model(linkage: Any = PRIMARY, saved: str = "definition", **more: Any) -> dict[str, Any]:
    return {"model_definition_id": Ref(saved), "linkage_type": linkage, **more}


def endpoint(saved: str = "endpoint", **more: Any) -> Call:
    body = {"name": name(), "model_configs": [model()], "usage_tracking": False, **more}
    return post("endpoints/create", f"{saved}=endpoint.endpoint_id", **body)


E1: dict[str, Any] = {"endpoint_id": Ref("endpoint")}
MISSING: dict[str, Any] = {"endpoint_id": "e-0"}


@pytest.fixture(autouse=True)
def tidy(both: Pair) -> Iterator[None]:
    """Both servers are left without a configuration."""
    yield
    for side in (both.stock, both.product):
        for folder, (listed, field) in LISTS.items():
            found = side.send(read(f"{folder}/list")).body.get(listed, [])
            for one in found:
                side.send(delete(f"{folder}/delete", **{field: one[field]}))


def test_secrets(both: Pair) -> None:
    same = name()
    both.send_all(
        [
            secret(provider="openai", auth_config={"api_base": " https://8.8.8.8/v1 "}),
            read("secrets/get", secret_id=Ref("secret")),
            post("secrets/update", secret_id=Ref("secret"), auth_config={"api_base": " "}),
            post("secrets/update", secret_id=Ref("secret"), auth_config={"region": "x"}),
            post(
                "secrets/update",
                secret_id=Ref("secret"),
                secret_value={"api_key": "0123456789", "short": "1234567"},
                updated_by="you",
            ),
            post("secrets/update", secret_id=Ref("secret")),
            secret("named", secret_name=same, created_by="me"),
            secret("named", secret_name=same),
            read("secrets/list"),
            read("secrets/list", provider="openai"),
            read("secrets/list", provider="nobody"),
            delete("secrets/delete", secret_id=Ref("named")),
            delete("secrets/delete", secret_id=Ref("named")),
            read("secrets/get", secret_id=Ref("named")),
            post("secrets/update", secret_id="s-0"),
            read("secrets/get"),
            read("secrets/get", secret_name=same),
        ]
    )


REFUSED_SECRETS: list[dict[str, Any]] = [
    *({"secret_name": value} for value in ("", None, 5, ["x"])),
    *({"secret_value": value} for value in ({}, "x", 5, {"a": 5}, {"a": None}, ["x"])),
    *({"provider": value} for value in ("", None, 5)),
    *({"auth_config": {"api_base": value}} for value in ("", "http://8.8.8.8", "ftp://x", "x")),
    *({"auth_config": {"api_base": f"https://{host}/v1"}} for host in ("127.0.0.1", "10.0.0.1")),
    *({"auth_config": {"api_base": f"https://{host}"}} for host in ("u:p@8.8.8.8", "1.1", "")),
    *({"auth_config": {key: "x"}} for key in ("base_url", "fallbacks", "model_list", "other")),
    *({"secret_value": {key: "x"}} for key in ("api_base", "base_url", "other")),
]


def test_secrets_that_are_refused(both: Pair) -> None:
    both.send_all(secret("any", **fields) for fields in REFUSED_SECRETS)


def test_model_definitions(both: Pair) -> None:
    same, other = name(), name()
    this: dict[str, Any] = {"model_definition_id": Ref("definition")}
    both.send_all(
        [
            secret(),
            secret("second"),
            definition(name=same, created_by="me"),
            definition("second definition", name=same),
            definition("second definition", name=other, provider="anthropic"),
            definition(secret_id="s-0"),
            *(definition(**{field: ""}) for field in ("name", "provider", "model_name")),
            read("model-definitions/get", **this),
            read("model-definitions/list"),
            read("model-definitions/list", provider="anthropic"),
            read("model-definitions/list", secret_id=Ref("secret")),
            read("model-definitions/list", secret_id="s-0"),
            post("model-definitions/update", **this, name=other),
            post("model-definitions/update", **this, name=same, updated_by="you"),
            post("model-definitions/update", **this, secret_id="s-0"),
            post("model-definitions/update", **this, secret_id=Ref("second"), model_name="gpt-5"),
            post("model-definitions/update", model_definition_id="d-0", name="x"),
            delete("secrets/delete", secret_id=Ref("second")),
            read("model-definitions/get", **this),
            delete("model-definitions/delete", **this),
            delete("model-definitions/delete", **this),
            read("model-definitions/get", **this),
        ]
    )


def test_endpoints(both: Pair) -> None:
    same = name()
    split: dict[str, Any] = {"routing_strategy": "REQUEST_BASED_TRAFFIC_SPLIT"}
    both.send_all(
        [
            secret(),
            definition(),
            definition("other", provider="anthropic"),
            endpoint(
                **split,
                name=same,
                usage_tracking=True,
                created_by="me",
                model_configs=[model(weight=0.1), model(FALLBACK, "other", fallback_order=0)],
                fallback_config={"strategy": "SEQUENTIAL", "max_attempts": 2},
            ),
            endpoint("twin", name=same),
            endpoint("plain"),
            endpoint("zero", experiment_id="0"),
            read("endpoints/get", **E1),
            read("endpoints/get", name=same),
            read("endpoints/get", name=same, **E1),
            read("endpoints/get", name="nobody"),
            read("endpoints/get"),
            read("endpoints/list"),
            read("endpoints/list", provider="anthropic"),
            read("endpoints/list", secret_id="s-0"),
            delete("model-definitions/delete", model_definition_id=Ref("other")),
            post("endpoints/update", **E1, fallback_config={"max_attempts": 0}),
            post("endpoints/update", **E1, fallback_config={"strategy": 0}, updated_by="you"),
            post("endpoints/update", **E1, model_configs=[model(FALLBACK), model()]),
            post("endpoints/update", endpoint_id=Ref("plain"), name=same),
            post("endpoints/update", endpoint_id=Ref("plain"), usage_tracking=True),
            post("endpoints/update", endpoint_id=Ref("plain"), name="a b"),
            post("endpoints/update", **E1, model_configs=[model(), model()]),
            post(
                "endpoints/update",
                **E1,
                model_configs=[{"model_definition_id": "d-0", "linkage_type": PRIMARY}],
            ),
            *(post("endpoints/update", **E1, experiment_id=one) for one in ("77777", "x", "")),
            post("endpoints/update", **MISSING),
            delete("model-definitions/delete", model_definition_id=Ref("other")),
            delete("endpoints/delete", **E1),
            delete("endpoints/delete", **E1),
            read("endpoints/get", **E1),
        ]
    )


REFUSED_ENDPOINTS: list[dict[str, Any]] = [
    *({"name": value} for value in ("", "a b", "a/b", "é", 5, None)),
    *({"model_configs": value} for value in ([], None, "x", {})),
    *({"model_configs": [model(linkage)]} for linkage in (None, 0, 1, 2, 3, "x", "2", "FALLBACK")),
    {"model_configs": [model(), model()]},
    {"model_configs": [{"model_definition_id": "d-0", "linkage_type": PRIMARY}]},
    {"model_configs": [{"linkage_type": PRIMARY}]},
    *({"model_configs": [model(weight=value)]} for value in (0, -1, 1e-9, 123456.789, 16777217)),
    *({"model_configs": [model(weight=value)]} for value in (0.3, 1 / 3, "0.25", "x", True)),
    *({"experiment_id": value} for value in ("", "x", "77777", "0")),
    *({"routing_strategy": value} for value in (0, 1, 5, "x", None)),
    *({"fallback_config": value} for value in ({}, None, {"strategy": "x"}, {"max_attempts": "2"})),
]


def test_endpoints_that_are_refused(both: Pair) -> None:
    both.send_all([secret(), definition()])
    both.send_all(endpoint("any", **fields) for fields in REFUSED_ENDPOINTS)


def test_models_of_endpoints(both: Pair) -> None:
    detach: dict[str, Any] = {**E1, "model_definition_id": Ref("definition")}
    both.send_all(
        [
            secret(),
            definition(),
            definition("other"),
            endpoint(),
            post("endpoints/models/attach", **E1, model_config=model()),
            post("endpoints/models/attach", **E1, model_config=model(FALLBACK), created_by="q"),
            post("endpoints/models/attach", **E1, model_config=model(saved="other", weight=0.7)),
            post("endpoints/models/attach", **E1, model_config={}),
            post("endpoints/models/attach", **E1),
            post("endpoints/models/attach", **MISSING, model_config=model()),
            post(
                "endpoints/models/attach",
                **E1,
                model_config={"model_definition_id": "d-0", "linkage_type": 1},
            ),
            post("endpoints/models/detach", **detach),
            read("endpoints/get", **E1),
            post("endpoints/models/detach", **detach),
            post("endpoints/models/detach", **detach),
            post("endpoints/models/detach", **{**detach, **MISSING}),
            post("endpoints/models/detach", **{**detach, "model_definition_id": Ref("other")}),
            read("endpoints/get", **E1),
            read("endpoints/list"),
            delete("endpoints/delete", **E1),
        ]
    )


def test_tags_and_bindings(both: Pair) -> None:
    bound: dict[str, Any] = {**E1, "resource_type": "scorer", "resource_id": "r1"}
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(),
            post("endpoints/set-tag", **E1, key="a", value="1"),
            post("endpoints/set-tag", **E1, key="a", value="2"),
            post("endpoints/set-tag", **E1, key="b"),
            post("endpoints/set-tag", **E1, key=""),
            post("endpoints/set-tag", **E1, value="x"),
            post("endpoints/set-tag", **MISSING, key="b"),
            read("endpoints/get", **E1),
            delete("endpoints/delete-tag", **E1, key="a"),
            delete("endpoints/delete-tag", **E1, key="a"),
            delete("endpoints/delete-tag", **MISSING, key="a"),
            read("endpoints/get", **E1),
            post("endpoints/bindings/create", **bound, created_by="me"),
            post("endpoints/bindings/create", **bound),
            post("endpoints/bindings/create", **{**bound, "resource_type": "x"}),
            post("endpoints/bindings/create", **{**bound, **MISSING}),
            *(post("endpoints/bindings/create", **{**bound, one: ""}) for one in bound),
            read("endpoints/bindings/list"),
            read("endpoints/bindings/list", **E1),
            read("endpoints/bindings/list", **MISSING),
            read("endpoints/bindings/list", resource_id="r1"),
            read("endpoints/bindings/list", resource_type="other"),
            delete("endpoints/bindings/delete", **{**bound, "resource_type": "x"}),
            delete("endpoints/bindings/delete", **bound),
            delete("endpoints/bindings/delete", **bound),
        ]
    )


BUDGET: dict[str, Any] = {
    "budget_unit": "USD",
    "budget_amount": 5,
    "duration": {"unit": "DAYS", "value": 1},
    "target_scope": "GLOBAL",
    "budget_action": "ALERT",
}


def budget(saved: str = "budget", **more: Any) -> Call:
    place = f"{saved}=budget_policy.budget_policy_id"
    body = {key: value for key, value in {**BUDGET, **more}.items() if value != "absent"}
    return post("budgets/create", place, **body)


REFUSED_BUDGETS: list[dict[str, Any]] = [
    *({field: value} for field in BUDGET for value in ("absent", None, 0, "", "x")),
    *({field: 1} for field in BUDGET if field != "duration"),
    *({"duration": {"unit": "DAYS", "value": value}} for value in (0, -1, "2", 1.5, None)),
    *({"duration": {"unit": value, "value": 1}} for value in (None, "x", 0, 5)),
    *({"target_scope": one} for one in ("WORKSPACE", "ENDPOINT", "USER")),
    *({"target_scope": one, "target_value": "e-0"} for one in ("GLOBAL", "ENDPOINT", "USER")),
    *({"budget_amount": value} for value in (-3.5, "7", 1e300, True)),
]


def test_budgets(both: Pair) -> None:
    this: dict[str, Any] = {"budget_policy_id": Ref("budget")}
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(),
            budget(created_by="me"),
            *(budget("any", duration={"unit": unit, "value": 1}) for unit in range(1, 6)),
            *(budget("any", duration={"unit": unit, "value": 7}) for unit in range(2, 6)),
            budget("aimed", target_scope="ENDPOINT", target_value=Ref("endpoint")),
            read("budgets/windows"),
            read("budgets/list"),
            read("budgets/get", **this),
            read("budgets/get", budget_policy_id="bp-0"),
            *(read("budgets/list", max_results=most) for most in (-1, 0, 50001, "x")),
            read("budgets/list", page_token="x"),
            post("budgets/update", **this, budget_amount=7, updated_by="you"),
            post("budgets/update", **this, target_scope="ENDPOINT"),
            post("budgets/update", **this, target_value="q"),
            post("budgets/update", **this, target_scope="ENDPOINT", target_value="e-0"),
            post("budgets/update", **this, target_scope="ENDPOINT", target_value=Ref("endpoint")),
            post("budgets/update", **this, target_scope="WORKSPACE"),
            post("budgets/update", **this, budget_unit=0),
            post("budgets/update", **this, budget_action="REJECT"),
            post("budgets/update", **this, duration={"unit": "HOURS", "value": 3}),
            post("budgets/update", **this, duration={"value": 3}),
            post("budgets/update", budget_policy_id="bp-0"),
            post("budgets/update", budget_policy_id="bp-0", target_value="x"),
            delete("budgets/delete", **this),
            delete("budgets/delete", **this),
            read("budgets/get", **this),
        ]
    )


def test_budgets_that_are_refused(both: Pair) -> None:
    both.send_all(budget("any", **fields) for fields in REFUSED_BUDGETS)


def test_pages_of_budgets(both: Pair) -> None:
    both.send_all(budget() for _ in range(5))
    for side in (both.stock, both.product):
        seen, token = [], ""
        while True:
            query = {"max_results": 2, **({"page_token": token} if token else {})}
            body = side.send(read("budgets/list", **query)).body
            seen += [policy["budget_policy_id"] for policy in body["budget_policies"]]
            token = body.get("next_page_token", "")
            if not token:
                break
        assert len(seen) == 5
        assert seen == sorted(set(seen))


def judge(model_name: str | None) -> str:
    return json.dumps(
        {
            "name": "judge",
            "builtin_scorer_class": None,
            "instructions_judge_pydantic_data": {
                "instructions": "Is {{ outputs }} good?",
                "model": model_name,
                "feedback_value_type": {"type": "string"},
            },
        }
    )


def scorer(scorer_name: str, model_name: str | None = "openai:/gpt-4o") -> Call:
    body = {"experiment_id": "0", "name": scorer_name, "serialized_scorer": judge(model_name)}
    return Call("POST", "/api/3.0/mlflow/scorers/register", body, saves={"scorer": "scorer_id"})


def guardrail(saved: str = "guardrail", **more: Any) -> Call:
    body = {
        "name": "g",
        "scorer_id": Ref("scorer"),
        "scorer_version": 1,
        "stage": "BEFORE",
        "action": "VALIDATION",
        **more,
    }
    return post("guardrails/create", f"{saved}=guardrail.guardrail_id", **body)


def test_guardrails(both: Pair) -> None:
    added: dict[str, Any] = {**E1, "guardrail_id": Ref("guardrail")}
    second: dict[str, Any] = {**E1, "guardrail_id": Ref("second")}
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(),
            scorer(name()),
            guardrail(),
            guardrail(
                "second",
                stage="AFTER",
                action="SANITIZATION",
                action_endpoint_id=Ref("endpoint"),
            ),
            guardrail(scorer_version=2),
            guardrail(scorer_id="nobody"),
            guardrail(action_endpoint_id="e-0"),
            *(guardrail("any", stage=value) for value in ("x", 0, "GUARDRAIL_STAGE_UNSPECIFIED")),
            *(guardrail("any", action=value) for value in ("x", 0, None)),
            read("guardrails/list"),
            read("guardrails/get", guardrail_id=Ref("guardrail")),
            read("guardrails/get", guardrail_id="gr-0"),
            post("guardrails/add-to-endpoint", **added),
            post("guardrails/add-to-endpoint", **added, execution_order=2),
            post("guardrails/add-to-endpoint", **second, execution_order=1),
            post("guardrails/add-to-endpoint", **{**added, **MISSING}),
            post("guardrails/add-to-endpoint", **E1, guardrail_id="gr-0"),
            read("guardrails/list-for-endpoint", **E1),
            read("guardrails/list-for-endpoint", **MISSING),
            patch("guardrails/update-config", **added, execution_order=0),
            read("guardrails/list-for-endpoint", **E1),
            patch("guardrails/update-config", **added),
            patch("guardrails/update-config", **E1, guardrail_id="gr-0"),
            delete("guardrails/remove-from-endpoint", **added),
            delete("guardrails/remove-from-endpoint", **added),
            delete("guardrails/delete", guardrail_id=Ref("second")),
            delete("guardrails/delete", guardrail_id=Ref("second")),
            read("guardrails/list-for-endpoint", **E1),
            read("guardrails/list"),
        ]
    )


def test_judges_that_ask_endpoints(both: Pair) -> None:
    """A judge keeps its endpoint when that is renamed, and loses it when that is deleted."""
    judged, called, renamed = name(), name(), name()
    found: dict[str, Any] = {"experiment_id": "0", "name": judged}
    scorers = "/api/3.0/mlflow/scorers/"
    seen = [
        Call("GET", f"{scorers}get", query=found),
        Call("GET", f"{scorers}versions", query=found),
        read("endpoints/bindings/list", **E1),
    ]
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(name=called),
            scorer(judged, f"gateway:/{called}"),
            scorer(name(), "gateway:/nobody"),
            *seen,
            scorer(judged, f"gateway:/{called}"),
            *seen,
            post("endpoints/update", **E1, name=renamed),
            *seen,
            delete("endpoints/delete", **E1),
            *seen[:2],
        ]
    )


def test_small_pages(both: Pair) -> None:
    ajax = "/ajax-api/3.0/mlflow/gateway/"
    both.send_all(
        Call("GET", f"{ajax}provider-config", query={"provider": provider} if provider else None)
        for provider in ("openai", "bedrock", "azure", "vertex_ai", "Databricks", "ours", "")
    )
