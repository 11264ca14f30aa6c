"""The gateway's budgets and guardrails, and judges that ask its endpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.gateway_calls import (
    E1,
    MISSING,
    definition,
    delete,
    endpoint,
    patch,
    post,
    read,
    secret,
    tidy,
)
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref

__all__ = ["tidy"]

pytestmark = pytest.mark.e2e


BUDGET: dict[str, Any] = {
    "budget_unit": "USD",
    "budget_amount": 5,
    "duration": {"unit": "DAYS", "value": 1},
    "target_scope": "GLOBAL",
    "budget_action": "ALERT",
}


def budget(saved: str = "budget", **more: Any) -> Call:
    saves = f"{saved}=budget_policy.budget_policy_id"
    body = {key: value for key, value in {**BUDGET, **more}.items() if value != "absent"}
    return post("budgets/create", saves, **body)


REFUSED_BUDGETS: list[dict[str, Any]] = [
    *({field: value} for field in BUDGET for value in ("absent", None, 0, "", "x")),
    *({field: 1} for field in BUDGET if field != "duration"),
    *({"duration": {"unit": "DAYS", "value": value}} for value in (0, -1, "2", 1.5, None)),
    *({"duration": {"unit": value, "value": 1}} for value in (None, "x", 0, 5)),
    *({"target_scope": scope} for scope in ("WORKSPACE", "ENDPOINT", "USER")),
    *({"target_scope": scope, "target_value": "e-0"} for scope in ("GLOBAL", "ENDPOINT", "USER")),
    *({"budget_amount": value} for value in (-3.5, "7", 1e300, True, "NaN", "Infinity")),
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
            post("budgets/update", **this, budget_amount="NaN"),
            read("budgets/get", **this),
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
    results: dict[str, Any] = {"experiment_id": "0", "name": judged}
    scorers = "/api/3.0/mlflow/scorers/"
    seen = [
        Call("GET", f"{scorers}get", query=results),
        Call("GET", f"{scorers}versions", query=results),
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


def test_online_settings_outlive_the_last_version(both: Pair) -> None:
    """They count for the next version of the name, which has the same scorer id."""
    judged, called = name(), name()
    named: dict[str, Any] = {"experiment_id": "0", "name": judged}
    scorers = "/api/3.0/mlflow/scorers/"
    rated = Call("PUT", f"{scorers}online-config", {**named, "sample_rate": 0.5})
    shown = Call("GET", f"{scorers}online-configs", query={"scorer_ids": [Ref("scorer")]})
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(name=called),
            scorer(judged, f"gateway:/{called}"),
            rated,
            Call("DELETE", f"{scorers}delete", {**named, "version": 1}),
            Call("GET", f"{scorers}versions", query=named),
            shown,
            scorer(judged, f"gateway:/{called}"),
            shown,
            read("endpoints/bindings/list", **E1),
            Call("DELETE", f"{scorers}delete", named),
            shown,
            read("endpoints/bindings/list", **E1),
        ]
    )


def test_small_pages(both: Pair) -> None:
    ajax = "/ajax-api/3.0/mlflow/gateway/"
    both.send_all(
        Call(
            "GET",
            f"{ajax}provider-config",
            query={"provider": provider} if provider else None,
            permits=frozenset({"own credentials"} if provider == "bedrock" else ()),
        )
        for provider in ("openai", "bedrock", "azure", "vertex_ai", "Databricks", "ours", "")
    )
