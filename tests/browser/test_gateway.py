"""The AI gateway in the UI: endpoints, secrets, budgets, and a judge that asks an endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.differential.rest import Call

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
V3 = "/api/3.0/mlflow/"


def test_pages(visitor: Visitor, data: Data) -> None:
    def made(path: str, **body: Any) -> Any:
        return data.ask(Call("POST", V3 + path, body))

    value = {"api_key": "sk-abcdefghijkl"}
    secret = made(
        "gateway/secrets/create", secret_name="my key", secret_value=value, provider="openai"
    )["secret"]["secret_id"]
    definition = made(
        "gateway/model-definitions/create",
        name="small model",
        secret_id=secret,
        provider="openai",
        model_name="gpt-4o-mini",
    )["model_definition"]["model_definition_id"]
    linked = [{"model_definition_id": definition, "linkage_type": "PRIMARY"}]
    endpoint = made("gateway/endpoints/create", name="answers", model_configs=linked)["endpoint"]
    made(
        "gateway/budgets/create",
        budget_unit="USD",
        budget_amount=12,
        duration={"unit": "MONTHS", "value": 1},
        target_scope="GLOBAL",
        budget_action="ALERT",
    )
    judge = {
        "name": "polite",
        "builtin_scorer_class": None,
        "instructions_judge_pydantic_data": {
            "instructions": "Is {{ outputs }} polite?",
            "model": "gateway:/answers",
            "feedback_value_type": {"type": "string"},
        },
    }
    made(
        "scorers/register",
        experiment_id=data.experiment,
        name="polite",
        serialized_scorer=json.dumps(judge),
    )
    visitor.open("/gateway")
    visitor.looks("gateway", "answers")
    visitor.go(f"/gateway/endpoints/{endpoint['endpoint_id']}")
    visitor.looks("gateway-endpoint", "answers")
    # As on MLflow's server where nobody logs in.
    visitor.expected.add(("GET", "/ajax-api/2.0/mlflow/users/list", 404))
    visitor.go("/gateway/budgets")
    visitor.looks("gateway-budgets", "Budget")
    visitor.go("/gateway/usage")
    visitor.looks("gateway-usage", "Usage")
    visitor.go("/settings/llm-connections")
    visitor.looks("llm-connections", "my key")
    visitor.go(f"/experiments/{data.experiment}/judges")
    visitor.looks("judges", "polite")
