"""Registered models and versions: names, numbers, stages and aliases, alone and in a race."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mlcore.repos import document
from mlcore.repos.registry import homes as model_homes
from mlcore.repos.registry import stages as model_stages
from tests.contract.api import Answer, Api, pairs
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.registry_calls import model, new_model, new_version, version
from tests.contract.threads import at_once


def latest(api: Api, name: str) -> dict[str, int]:
    """The latest version of each stage."""
    return {
        latest_version["current_stage"]: int(latest_version["version"])
        for latest_version in model(api, name).get("latest_versions", ())
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


def test_stages_race(store: Store) -> None:
    """Whatever order transitions, creations and deletions take, the model knows the latest of each
    stage."""
    api = store.api
    new_model(api, "raced", versions=6)

    def act(worker: int) -> None:
        chance = random.Random(worker)
        for _ in range(5):
            number = chance.randrange(1, 7)
            stage = chance.choice(["None", "Staging", "Production", "Archived"])
            if worker == 0:
                new_version(api, "raced")
            elif worker == 1 and number > 4:
                api.ask("DELETE", "model-versions/delete", name="raced", version=str(number))
            else:
                api.ask(
                    "POST",
                    "model-versions/transition-stage",
                    **{"name": "raced", "version": str(number), "stage": stage},
                    archive_existing_versions=stage in ("Staging", "Production"),
                )

    at_once(6, act)
    model_versions = api.get("model-versions/search", filter="name = 'raced'")["model_versions"]
    expected: dict[str, int] = {}
    for entry in model_versions:
        stage, number = entry["current_stage"], int(entry["version"])
        expected[stage] = max(expected.get(stage, 0), number)
    assert latest(api, "raced") == expected
    assert max(expected.values()) == 11


def test_a_deleted_version_takes_its_aliases_along(store: Store) -> None:
    """Nobody sets an alias on a version that another deletes at this moment."""
    api = store.api
    new_model(api, "aliased", versions=5)

    def act(worker: int) -> None:
        for number in range(1, 6):
            if worker % 2:
                api.ask("DELETE", "model-versions/delete", name="aliased", version=str(number))
            else:
                api.ask(
                    "POST",
                    "registered-models/alias",
                    **{"name": "aliased", "alias": f"a{worker}", "version": str(number)},
                )

    at_once(4, act)
    assert "aliases" not in model(api, "aliased")
    assert not [item for item in store.items() if item["type"]["S"] == "model_alias"]


def test_names_and_numbers_move_at_once(store: Store) -> None:
    """Readers see a renamed model under one of both names, whole; its old name is free at once."""
    api = store.api
    new_model(api, "old", versions=120)
    api.post("registered-models/alias", name="old", alias="prod", version="7")
    seen: list[int] = []

    def act(worker: int) -> None:
        if worker == 0:
            api.post("registered-models/rename", name="old", new_name="new")
            assert api.cost.round_trips <= 4
            new_model(api, "old", versions=2)
            return
        for _ in range(10):
            for name in ("old", "new"):
                answer = api.ask("GET", "registered-models/alias", name=name, alias="prod")
                if answer.status == 200:
                    seen.append(int(answer.body["model_version"]["version"]))

    at_once(4, act)
    assert set(seen) == {7}
    assert len(api.get("model-versions/search", filter="name = 'new'")["model_versions"]) == 120
    assert len(api.get("model-versions/search", filter="name = 'old'")["model_versions"]) == 2
    api.post("registered-models/rename", name="new", new_name="newer")
    assert version(api, "newer", 7)["aliases"] == ["prod"]
    assert api.ask("DELETE", "registered-models/delete", name="newer").status == 200
    assert version(api, "old", 2)["version"] == "2"


@pytest.mark.parametrize("cut_off", [True, False])
def test_a_name_is_anew_after_its_deletion(
    store: Store, monkeypatch: pytest.MonkeyPatch, cut_off: bool
) -> None:
    """What a deleted model leaves comes back under no name, and numbers begin at 1."""
    api = store.api
    new_model(api, "gone", versions=60, tags=pairs({"k": "v"}))
    new_version(api, "gone", run_id="some run")
    api.post("registered-models/alias", name="gone", alias="prod", version="1")
    with monkeypatch.context() as patch:
        if cut_off:
            patch.setattr(model_homes, "clear", lambda *_, **__: None)
        assert api.ask("DELETE", "registered-models/delete", name="gone").status == 200
    new_model(api, "gone")
    assert set(model(api, "gone")) == {"name", "creation_timestamp", "last_updated_timestamp"}
    assert api.get("model-versions/search", filter="run_id = 'some run'") == {}
    assert api.get("model-versions/search", filter="name = 'gone'") == {}
    assert api.ask("GET", "model-versions/get", name="gone", version="1").status == 404
    assert new_version(api, "gone", run_id="some run") == 1
    model_versions = api.get("model-versions/search", filter="run_id = 'some run'")[
        "model_versions"
    ]
    assert [entry["version"] for entry in model_versions] == ["1"]
    if not cut_off:
        assert {item["PK"]["S"] for item in store.items()} == {"RM#gone", "RUN#some run"}


def test_archiving_more_than_a_transaction_takes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_stages, "MOVES_TOGETHER", 3)
    api = store.api
    new_model(api, "full", versions=12)
    for number in range(1, 12):
        moved(api, "full", number, "Production")
    moved(api, "full", 12, "Production", archive=True)
    assert latest(api, "full") == {"Production": 12, "Archived": 11}
    assert version(api, "full", 1)["current_stage"] == "Archived"


def test_tags_that_do_not_fit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", 500)
    api = store.api
    texts = {f"k{number}": f"{number}" * 200 for number in range(6)}
    for name in ("large", "larger"):
        new_model(api, name, tags=pairs(texts))
        new_version(api, name, tags=pairs(texts))
        for number in range(8):
            api.post("registered-models/alias", name=name, alias=f"{number}" * 90, version="1")
        api.post("registered-models/set-tag", name=name, key="k1", value="short")
        api.post("model-versions/set-tag", name=name, version="1", key="k1", value="x" * 900)
    api.post("registered-models/rename", name="large", new_name="renamed")
    for name in ("renamed", "larger"):
        registered_model = model(api, name)
        assert {tag["key"]: tag["value"] for tag in registered_model["tags"]} == {
            **texts,
            "k1": "short",
        }
        assert len(registered_model["aliases"]) == 8
        assert version(api, name, 1)["aliases"] == [f"{number}" * 90 for number in range(8)]
        tags = version(api, name, 1)["tags"]
        assert {tag["key"]: tag["value"] for tag in tags} == {**texts, "k1": "x" * 900}
        assert api.ask("DELETE", "model-versions/delete", name=name, version="1").status == 200
        assert "aliases" not in model(api, name)
        assert api.ask("DELETE", "registered-models/delete", name=name).status == 200
    assert store.items() == []


def test_workspaces_share_no_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    enable_workspaces(monkeypatch, "team-a", "team-b")

    def inside(workspace: str, method: str, path: str, **fields: Any) -> Answer:
        return Api(workspace).ask(method, path, **fields)

    for workspace in ("default", "team-a", "team-b"):
        made = inside(workspace, "POST", "registered-models/create", name="same")
        assert made.status == 200
        source = f"s3://{workspace}/m"
        fields = {"name": "same", "source": source, "run_id": "r"}
        assert inside(workspace, "POST", "model-versions/create", **fields).status == 200
    inside("team-a", "POST", "registered-models/rename", name="same", new_name="other")
    for workspace, names in (("default", ["same"]), ("team-a", ["other"]), ("team-b", ["same"])):
        listed = inside(workspace, "GET", "registered-models/search").body["registered_models"]
        assert [entry["name"] for entry in listed] == names
        for text in ("run_id = 'r'", f"name = '{names[0]}'", ""):
            body = inside(workspace, "GET", "model-versions/search", filter=text).body
            sources = [entry["source"] for entry in body["model_versions"]]
            assert sources == [f"s3://{workspace}/m"]
    assert inside("team-a", "GET", "registered-models/get", name="same").status == 404


def test_costs(store: Store) -> None:
    api = store.api
    new_model(api, "costly", tags=pairs({"k": "v" * 500}))
    for number in range(1, 31):
        new_version(api, "costly", run_id="r")
        assert (api.cost.round_trips, api.cost.write_units <= 12) == (2, True), number
    api.post("registered-models/alias", name="costly", alias="prod", version="7")
    assert api.cost.round_trips == 2
    api.get("registered-models/alias", name="costly", alias="prod")
    assert api.cost.round_trips == 2
    version(api, "costly", 7)
    assert api.cost.round_trips == 1
    model(api, "costly")
    assert (api.cost.round_trips, api.cost.read_units <= 4) == (2, True)
    assert len(api.get("model-versions/search", filter="run_id = 'r'")["model_versions"]) == 30
    assert api.cost.round_trips == 3
    api.post("registered-models/rename", name="costly", new_name="renamed")
    assert (api.cost.round_trips, api.cost.write_units <= 14) == (4, True)


def test_a_search_finds_the_end_of_a_name_that_is_cut_in_the_index(store: Store) -> None:
    name = "\N{GRINNING FACE}" * 300 + "-end"
    new_model(store.api, name)
    new_model(store.api, "\N{GRINNING FACE}" * 300)
    for text in ("name LIKE '%-end'", "name ILIKE '%-END'"):
        named = store.api.get("registered-models/search", filter=text)["registered_models"]
        assert [each["name"] for each in named] == [name]


def test_a_search_by_name_costs_what_it_finds(store: Store) -> None:
    api = store.api
    for number in range(400):
        new_model(api, f"model-{number:04d}", versions=number < 3)
    new_model(api, "needle-1")
    for text, count in (("name LIKE 'needle%'", 1), ("name LIKE '%edle%'", 1), ("", 100)):
        registered_models = api.get("registered-models/search", filter=text)["registered_models"]
        assert len(registered_models) == count
        assert api.cost.read_units <= count + 25, (text, api.cost)
        assert api.cost.round_trips <= 3
