"""The registry under faults, repeated requests, and global indexes that are seconds behind."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mlcore.db import keys
from mlcore.db import table as table_module
from mlcore.db.table import table
from mlcore.repos import document
from mlcore.repos.registry import registered_models
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, forget
from tests.contract.faults import DONE_BEFORE, faults_at
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.registry_calls import model, new_model, new_version, version
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

Fields = dict[str, Any]
_numbers = itertools.count()

CASES: dict[str, tuple[str, str, Callable[[str], Fields]]] = {
    "create model": (
        *("POST", "registered-models/create"),
        lambda name: {"name": f"{name} new", "tags": pairs({"a": "b"})},
    ),
    "create model, tags outside": (
        *("POST", "registered-models/create"),
        lambda name: {"name": f"{name} new", "tags": pairs({"a": "b" * 900, "c": "d" * 900})},
    ),
    "update model": (
        *("PATCH", "registered-models/update"),
        lambda name: {"name": name, "description": "new"},
    ),
    "rename model": (
        *("POST", "registered-models/rename"),
        lambda name: {"name": name, "new_name": f"{name} new"},
    ),
    "delete model": ("DELETE", "registered-models/delete", lambda name: {"name": name}),
    "set model tag": (
        *("POST", "registered-models/set-tag"),
        lambda name: {"name": name, "key": "k", "value": "v"},
    ),
    "delete model tag": (
        *("DELETE", "registered-models/delete-tag"),
        lambda name: {"name": name, "key": "first"},
    ),
    "set alias": (
        *("POST", "registered-models/alias"),
        lambda name: {"name": name, "alias": "prod", "version": "1"},
    ),
    "delete alias": (
        *("DELETE", "registered-models/alias"),
        lambda name: {"name": name, "alias": "champion"},
    ),
    "create version": (
        *("POST", "model-versions/create"),
        lambda name: {
            **{"name": name, "source": "s3://b/n", "run_id": f"{name} run"},
            "tags": pairs({"a": "b", "long": "c" * 900}),
        },
    ),
    "update version": (
        *("PATCH", "model-versions/update"),
        lambda name: {"name": name, "version": "2", "description": "new"},
    ),
    "transition": (
        *("POST", "model-versions/transition-stage"),
        lambda name: {
            **{"name": name, "version": "1", "stage": "Production"},
            "archive_existing_versions": True,
        },
    ),
    "delete version": (
        *("DELETE", "model-versions/delete"),
        lambda name: {"name": name, "version": "2"},
    ),
    "set version tag": (
        *("POST", "model-versions/set-tag"),
        lambda name: {"name": name, "version": "2", "key": "k", "value": "v" * 900},
    ),
    "tag a prompt": (
        *("POST", "model-versions/set-tag"),
        lambda name: {
            **{"name": name, "version": "2"},
            **{"key": "mlflow.prompt.is_prompt", "value": "true"},
        },
    ),
    "delete version tag": (
        *("DELETE", "model-versions/delete-tag"),
        lambda name: {"name": name, "version": "2", "key": "first"},
    ),
}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)
    monkeypatch.setattr(document, "INLINE_BYTES", 1000)


def prepared(api: Api) -> str:
    name = f"model-{next(_numbers):06d}"
    new_model(api, name, tags=pairs({"first": "1"}))
    for _ in range(3):
        new_version(api, name, run_id=f"{name} run", tags=pairs({"first": "1"}))
    api.post("registered-models/alias", name=name, alias="champion", version="2")
    for number, stage in (("2", "Production"), ("3", "Staging")):
        api.post("model-versions/transition-stage", name=name, version=number, stage=stage)
    return name


def comparable(value: Any) -> Any:
    """An answer without what differs from time to time."""
    text = re.sub(r"model-\d{6}", "<name>", json.dumps(value, sort_keys=True))
    text = re.sub(r'"(creation_timestamp|last_updated_timestamp)": \d+', '"time": 0', text)
    return json.loads(text)


def state(api: Api, name: str) -> list[Any]:
    """All that clients can see. A version created twice counts once: its client was not told of the
    first."""
    results: list[Any] = []
    for each in (name, f"{name} new"):
        seen = comparable(api.ask("GET", "registered-models/get", name=each).body)
        versions = [
            comparable(api.ask("GET", "model-versions/get", name=each, version=str(number)).body)
            for number in range(1, 4)
        ]
        listed = api.get("model-versions/search", filter=f"name = '{each}'")
        made = {entry["source"] for entry in comparable(listed).get("model_versions", ())}
        text = re.sub(r'"version": "[4-9]"', '"version": "new"', json.dumps(seen))
        results += [json.loads(text), versions, sorted(made)]
    of_run = api.get("model-versions/search", filter=f"run_id = '{name} run'")
    numbers = {min(int(entry["version"]), 4) for entry in of_run.get("model_versions", ())}
    return [*results, sorted(numbers)]


def same(answer: Any, calm: Any) -> bool:
    def unnumbered(value: Any) -> str:
        return re.sub(r'"version": "[4-9]"', "", json.dumps(value))

    return unnumbered(comparable(answer)) == unnumbered(calm)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_at_every_call(broken: tuple[Api, Doubles], name: str) -> None:
    api, doubles = broken
    method, path, fields = CASES[name]
    scene = prepared(api)
    forget()
    before, kills_before = doubles.faulty.total, doubles.faulty.kills
    first = api.ask(method, path, **fields(scene))
    calls = doubles.faulty.total - before
    kills = doubles.faulty.kills - kills_before
    assert first.status == 200, first
    assert calls, "the request made no call"
    calm = comparable(first.body)
    expected = state(api, scene)
    for nth in range(1, calls + 1):
        for fault in faults_at(nth, kills, name):
            scene = prepared(api)
            forget()
            doubles.faulty.arm(fault, nth)
            answer = api.ask(method, path, **fields(scene))
            where = f"{fault.name} at call {nth}"
            assert doubles.faulty.fired or nth > 1, where
            doubles.faulty.heal()
            if answer.status != 200:
                assert answer.status >= 500 or answer.status == 429, (where, answer)
                answer = api.ask(method, path, **fields(scene))
            if answer.status == 200:
                assert same(answer.body, calm), where
            else:
                assert answer.code in DONE_BEFORE, (where, answer)
            assert state(api, scene) == expected, where


def test_a_lost_answer_inside_makes_one_version(broken: tuple[Api, Doubles]) -> None:
    """Only a client that repeats its request gets two; our own repetitions never do."""
    api, doubles = broken
    for fault in (Fault.ANSWER_LOST, Fault.ANSWER_500, Fault.REPEATED, Fault.CONFLICT):
        scene = prepared(api)
        doubles.faulty.arm(fault, 1, frozenset({"TransactWriteItems"}))
        assert new_version(api, scene) == 4
        assert doubles.faulty.fired
        doubles.faulty.heal()
        assert api.ask("GET", "model-versions/get", name=scene, version="5").status == 404


def test_no_read_of_the_registry_is_stale(broken: tuple[Api, Doubles]) -> None:
    api, doubles = broken
    with doubles.counting.measure() as cost:
        for method, path, fields in CASES.values():
            scene = prepared(api)
            assert api.ask(method, path, **fields(scene)).status == 200
            state(api, scene)
    assert cost.stale_reads == []


def test_all_is_read_at_once(lagging_store: Store) -> None:
    """But lists of all models, nothing asks a global index."""
    api = lagging_store.api
    new_model(api, "fresh", versions=2)
    assert len(model(api, "fresh")["latest_versions"]) == 1
    new_version(api, "fresh", run_id="its run", tags=pairs({"k": "v"}))
    api.post("registered-models/alias", name="fresh", alias="prod", version="3")

    def search(text: str) -> list[tuple[str, str]]:
        answer = api.get("model-versions/search", filter=text)
        return [(row["name"], row["version"]) for row in answer.get("model_versions", ())]

    assert search("name = 'fresh' AND tags.k = 'v'") == [("fresh", "3")]
    assert search("run_id = 'its run'") == [("fresh", "3")]
    assert len(search("name IN ('fresh', 'other')")) == 3
    named = api.get("registered-models/search", filter="name = 'fresh'")["registered_models"]
    assert [row["name"] for row in named] == ["fresh"]
    api.post("registered-models/rename", name="fresh", new_name="renamed")
    assert api.ask("GET", "registered-models/get", name="fresh").status == 404
    assert version(api, "renamed", 3)["aliases"] == ["prod"]
    assert search("run_id = 'its run'") == [("renamed", "3")]
    assert search("name = 'fresh'") == []
    new_model(api, "fresh", versions=1)
    assert search("name = 'fresh'") == [("fresh", "1")]
    api.ask("DELETE", "registered-models/delete", name="renamed")
    assert search("run_id = 'its run'") == []
    assert api.ask("GET", "registered-models/alias", name="renamed", alias="prod").status == 404


def test_an_alias_that_moves_is_not_deleted_with_its_former_version(store: Store) -> None:
    """A version with more aliases than a transaction takes is deleted while one is set anew."""
    api = store.api
    numbers = itertools.count()
    names: list[str] = []

    def prepare() -> tuple[Act, Act]:
        name = f"aliased {next(numbers)}"
        names.append(name)
        new_model(api, name)
        for _ in range(2):
            new_version(api, name)
        stored = registered_models.get("default", name)
        aliases = {f"a{nth:02}": "1" for nth in range(42)}
        registered_models.write(stored, {"aliases": aliases}, ())
        table.batch_write(
            [registered_models._alias(keys.model_alias(stored.home, a), a, "1") for a in aliases]
        )
        fields = {"name": name, "alias": "a41", "version": "2"}
        setting = partial(api.ask, "POST", "registered-models/alias", **fields)
        deleting = partial(api.ask, "DELETE", "model-versions/delete", name=name, version="1")
        return deleting, setting

    for answers in meetings(prepare):
        assert [answer.status for answer in answers] == [200, 200]
        assert registered_models.get("default", names[-1]).model.aliases == {"a41": 2}
