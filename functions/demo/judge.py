"""Creates and deletes the demo's two judges."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore.http.api_client import ApiClient
from mlcore.mlflow_version import MLFLOW_VERSION

JUDGES: Final = {
    "is_grounded": "Is everything in {{ outputs }} said by what was found for {{ inputs }}? Answer "
    "yes or no.",
    "is_short": "Has {{ outputs }} at most three sentences? Answer yes or no.",
}
"""The instructions of each judge, by its name."""


def make(client: ApiClient, experiment_id: str) -> None:
    response = client.get("/3.0/mlflow/scorers/list", experiment_id=experiment_id)
    names = {scorer["scorer_name"] for scorer in response.get("scorers", ())}
    for name, instructions in JUDGES.items():
        if name not in names:
            client.post(
                "/3.0/mlflow/scorers/register",
                experiment_id=experiment_id,
                name=name,
                serialized_scorer=json.dumps(_scorer(name, instructions)),
            )


def remove(client: ApiClient, experiment_id: str) -> None:
    for name in JUDGES:
        client.remove(
            "DELETE", "/3.0/mlflow/scorers/delete", experiment_id=experiment_id, name=name
        )


def _scorer(name: str, instructions: str) -> dict[str, Any]:
    """Returns the JSON of a judge with instructions; MLflow's client can read it."""
    return {
        "name": name,
        "aggregations": [],
        "is_session_level_scorer": False,
        "mlflow_version": MLFLOW_VERSION,
        "serialization_version": 1,
        "instructions_judge_pydantic_data": {
            "instructions": instructions,
            "model": "openai:/gpt-4o-mini",
            "feedback_value_type": {"type": "boolean", "title": "Result"},
        },
        "builtin_scorer_class": None,
        "builtin_scorer_pydantic_data": None,
        "call_source": None,
        "call_signature": None,
        "original_func_name": None,
    }
