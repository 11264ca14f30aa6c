"""A gateway with endpoints whose providers are servers of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import evaluation.app
import experiments.app
import gateway.app
from tests.contract.api import called

Json = dict[str, Any]

KEY = "sk-live-0123456789abcdefghij"


def allow_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets secrets name providers of this machine."""
    monkeypatch.setenv("MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES", "http,https")
    monkeypatch.setenv("MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS", "true")


def configure(path: str, fields: Json) -> Json:
    """What ``POST /api/3.0/mlflow/gateway/<path>`` makes."""
    answer = called(gateway.app.handler, "POST", f"/api/3.0/mlflow/gateway/{path}", fields)
    assert answer.status == 200, answer
    (made,) = answer.body.values()
    return dict(made)


def saved_key(
    url: str,
    name: str,
    provider: str = "openai",
    *,
    secret: Mapping[str, str] | None = None,
    auth_config: Mapping[str, str] | None = None,
) -> str:
    """The id of a secret."""
    auth = {**({"api_base": url} if url else {}), **(auth_config or {})}
    kept = configure(
        "secrets/create",
        {
            "secret_name": name,
            "secret_value": {"api_key": KEY} if secret is None else dict(secret),
            "provider": provider,
            "auth_config": auth,
        },
    )
    return str(kept["secret_id"])


def model(
    name: str,
    provider: str,
    url: str = "",
    *,
    model_name: str = "",
    secret: Mapping[str, str] | None = None,
    auth_config: Mapping[str, str] | None = None,
) -> str:
    """The id of a model definition with a secret of its own."""
    secret_id = saved_key(url, f"key of {name}", provider, secret=secret, auth_config=auth_config)
    made = configure(
        "model-definitions/create",
        {
            "name": name,
            "secret_id": secret_id,
            "provider": provider,
            "model_name": model_name or f"{name}-model",
        },
    )
    return str(made["model_definition_id"])


def endpoint(name: str, primary: Sequence[str], fallback: Sequence[str] = (), **more: Any) -> str:
    """The id of an endpoint; ``fallback`` in the order in which they are asked."""
    configs: list[Json] = [
        {"model_definition_id": model_id, "linkage_type": "PRIMARY", "weight": 1.0}
        for model_id in primary
    ] + [
        {"model_definition_id": model_id, "linkage_type": "FALLBACK", "fallback_order": order}
        for order, model_id in enumerate(fallback)
    ]
    fields: Json = {"name": name, "model_configs": configs, "usage_tracking": False, **more}
    if fallback:
        fields["fallback_config"] = {"strategy": "SEQUENTIAL", "max_attempts": len(fallback)}
    return str(configure("endpoints/create", fields)["endpoint_id"])


def judge(name: str, instructions: str, endpoint_name: str, kind: str = "string") -> Json:
    """What ``make_judge`` makes, which asks an endpoint."""
    held = {
        "instructions": instructions,
        "model": f"gateway:/{endpoint_name}",
        "feedback_value_type": {"type": kind},
    }
    return {"name": name, "instructions_judge_pydantic_data": held}


def guard(
    endpoint_id: str, scorer: Json, stage: str, action: str = "VALIDATION", **more: Any
) -> str:
    """The id of a guardrail that is on an endpoint from now on.

    Args:
        more: ``action_endpoint_id``, which rewrites what must not stay; ``execution_order``.
    """
    order = {name: more.pop(name) for name in ("execution_order",) if name in more}
    experiment = called(
        experiments.app.handler,
        "POST",
        "/api/2.0/mlflow/experiments/create",
        {"name": f"scorers of {scorer['name']}"},
    )
    registered = called(
        evaluation.app.handler,
        "POST",
        "/api/3.0/mlflow/scorers/register",
        {
            "experiment_id": experiment.body["experiment_id"],
            "name": scorer["name"],
            "serialized_scorer": json.dumps(scorer),
        },
    )
    assert registered.status == 200, registered
    fields = {"name": scorer["name"], "stage": stage, "action": action, "scorer_version": 1, **more}
    made = configure("guardrails/create", {**fields, "scorer_id": registered.body["scorer_id"]})
    used = {"endpoint_id": endpoint_id, "guardrail_id": made["guardrail_id"], **order}
    configure("guardrails/add-to-endpoint", used)
    return str(made["guardrail_id"])


PRICE = 11 * 2.5e-6 + 7 * 10e-6
"""Of a chat with gpt-4o: 11 tokens in, 7 out."""


def budget(scope: str, dollars: float, action: str = "REJECT", target: str = "") -> str:
    made = configure(
        "budgets/create",
        {
            "budget_unit": "USD",
            "budget_amount": dollars,
            "duration": {"unit": "DAYS", "value": 1},
            "target_scope": scope,
            "budget_action": action,
            **({"target_value": target} if target else {}),
        },
    )
    return str(made["budget_policy_id"])
