"""Requests to the model registry."""

from __future__ import annotations

from typing import Any

from tests.contract.api import Api

Fields = dict[str, Any]


def new_model(api: Api, name: str, versions: int = 0, **fields: Any) -> None:
    api.post("registered-models/create", name=name, **fields)
    for _ in range(versions):
        new_version(api, name)


def new_version(api: Api, name: str, **fields: Any) -> int:
    created = api.post("model-versions/create", name=name, source="s3://b/m", **fields)
    return int(created["model_version"]["version"])


def model(api: Api, name: str) -> Fields:
    registered_model: Fields = api.get("registered-models/get", name=name)["registered_model"]
    return registered_model


def version(api: Api, name: str, number: int) -> Fields:
    model_version: Fields = api.get("model-versions/get", name=name, version=number)[
        "model_version"
    ]
    return model_version
