"""Registered models and versions: names, numbers, stages and aliases, alone and in a race."""

from __future__ import annotations

from typing import Any

from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.test_concurrency import at_once

Fields = dict[str, Any]


def new_model(api: Api, name: str, versions: int = 0, **fields: Any) -> None:
    api.post("registered-models/create", name=name, **fields)
    for _ in range(versions):
        new_version(api, name)


def new_version(api: Api, name: str, **fields: Any) -> int:
    created = api.post("model-versions/create", name=name, source="s3://b/m", **fields)
    return int(created["model_version"]["version"])


def model(api: Api, name: str) -> Fields:
    found: Fields = api.get("registered-models/get", name=name)["registered_model"]
    return found


def version(api: Api, name: str, number: int) -> Fields:
    found: Fields = api.get("model-versions/get", name=name, version=number)["model_version"]
    return found


def latest(api: Api, name: str) -> dict[str, int]:
    """The latest version of each stage."""
    return {
        found["current_stage"]: int(found["version"])
        for found in model(api, name).get("latest_versions", ())
    }


def moved(api: Api, name: str, number: int, stage: str, archive: bool = False) -> None:
    api.post(
        "model-versions/transition-stage",
        name=name,
        version=str(number),
        stage=stage,
        archive_existing_versions=archive,
    )


def test_a_name_has_one_creator(store: Store) -> None:
    answers = at_once(
        16, lambda _: store.api.ask("POST", "registered-models/create", name="contested")
    )
    assert sorted(answer.status for answer in answers) == [200] + [400] * 15
    assert {answer.code for answer in answers if answer.status == 400} == {
        "RESOURCE_ALREADY_EXISTS"
    }


def test_concurrent_versions_are_consecutive(store: Store) -> None:
    new_model(store.api, "busy")
    numbers = at_once(16, lambda _: new_version(store.api, "busy"))
    assert sorted(numbers) == list(range(1, 17))
    assert latest(store.api, "busy") == {"None": 16}
