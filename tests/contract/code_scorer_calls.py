"""Scorers that are code as MLflow's client serializes them, and requests about them."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.judges_world import World, ask

Json = dict[str, Any]
FLAG = "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS"


def code(source: str, signature: str = "(inputs, outputs)", **fields: Any) -> Json:
    """A decorated function as MLflow's client serializes it."""
    return {
        "name": "quality",
        "is_session_level_scorer": False,
        "timeout": None,
        "mlflow_version": "3.18.0",
        "serialization_version": 1,
        "call_source": source,
        "call_signature": signature,
        "original_func_name": "quality",
        **fields,
    }


def register(world: World, data: Json, name: str = "quality") -> int:
    body = {
        "experiment_id": world.experiment,
        "name": name,
        "serialized_scorer": json.dumps(data),
    }
    answer = ask("POST", "mlflow/scorers/register", body)
    assert answer.status == 200, answer
    return int(answer.body["version"])


def refused(world: World, data: Any, trace: str, **fields: Any) -> str:
    body = {
        "experiment_id": world.experiment,
        "serialized_scorer": json.dumps(data),
        "trace_ids": [trace],
        **fields,
    }
    answer = ask("POST", "mlflow/scorer/invoke", body)
    assert answer.status == 400, answer
    return str(answer.body["message"])
