"""Calls of the gateway's configuration, for both servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref

__all__ = ["tidy"]

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
    saves = f"{saved}=model_definition.model_definition_id"
    return post("model-definitions/create", saves, **{**body, **more})


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
            items = side.send(read(f"{folder}/list")).body.get(listed, [])
            for item in items:
                side.send(delete(f"{folder}/delete", **{field: item[field]}))
