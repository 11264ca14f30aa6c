"""The gateway's configuration: what two callers do at once, what is never told, and workspaces."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gateway.app
from mlcore import secrets
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import configuration
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.sealing import seal_here

VALUE = "sk-live-0123456789abcdefghij"
OTHER = "sk-live-zyxwvutsrqponmlkjihg"


@pytest.fixture(autouse=True)
def sealed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)


def ask(
    method: str, path: str, fields: dict[str, Any], workspace: str = ""
) -> tuple[int, dict[str, Any], str]:
    headers = {"content-type": "application/json", "host": "localhost"}
    if workspace:
        headers["x-mlflow-workspace"] = workspace
    event = {
        "version": "2.0",
        "rawPath": f"/api/3.0/mlflow/gateway/{path}",
        "rawQueryString": "&".join(f"{k}={v}" for k, v in fields.items() if method == "GET"),
        "headers": headers,
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": False,
        **({} if method == "GET" else {"body": json.dumps(fields)}),
    }
    answer = gateway.app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"]), answer["body"]


def made(path: str, fields: dict[str, Any], workspace: str = "") -> dict[str, Any]:
    status, body, _ = ask("POST", path, fields, workspace)
    assert status == 200, body
    (part,) = body.values()
    return dict(part)


def filled(workspace: str = "", suffix: str = "") -> dict[str, str]:
    """One of each, by the name of its id."""
    value = {"api_key": VALUE}
    secret = made("secrets/create", {"secret_name": "k" + suffix, "secret_value": value}, workspace)
    definition = made(
        "model-definitions/create",
        {
            "name": "m" + suffix,
            "secret_id": secret["secret_id"],
            "provider": "openai",
            "model_name": "gpt-4o",
        },
        workspace,
    )
    linked = {
        "model_definition_id": definition["model_definition_id"],
        "linkage_type": "PRIMARY",
    }
    endpoint = made(
        "endpoints/create",
        {"name": "e" + suffix, "model_configs": [linked], "usage_tracking": False},
        workspace,
    )
    return {
        "secret_id": secret["secret_id"],
        "model_definition_id": definition["model_definition_id"],
        "endpoint_id": endpoint["endpoint_id"],
    }


def test_values_are_told_nowhere(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    texts = []
    with caplog.at_level(logging.DEBUG):
        ids = filled()
        here = {"secret_id": ids["secret_id"]}
        texts.append(ask("POST", "secrets/update", {**here, "secret_value": {"api_key": OTHER}})[2])
        for misfit in (OTHER, 5, [OTHER], {"api_key": {"x": OTHER}}, {"base_url": OTHER}):
            fields = {"secret_name": "x", "secret_value": misfit, "auth_config": {}}
            texts.append(ask("POST", "secrets/create", fields)[2])
            texts.append(ask("POST", "secrets/create", {**fields, "secretValue": misfit})[2])
            texts.append(ask("POST", "secrets/update", {**here, "secretValue": misfit})[2])
        texts += [
            ask("GET", path, fields)[2]
            for path, fields in (
                ("secrets/list", {}),
                ("secrets/get", here),
                ("endpoints/list", {}),
                ("model-definitions/list", {}),
            )
        ]
    texts += [json.dumps(item, default=repr) for item in store.items()]
    texts += [record.getMessage() for record in caplog.records]
    for text in texts:
        assert VALUE not in text
        assert OTHER not in text
    kept = configuration.read("default").secrets[ids["secret_id"]]
    opened = secrets.open_sealed(kept.sealed, {"gateway_secret_id": kept.secret_id})
    assert json.loads(opened) == {"api_key": OTHER}


def test_one_of_two_creators_wins(store: Store) -> None:
    ids = filled()
    names = [f"n{number}" for number in range(4)]
    sent = [
        {"name": name, "provider": "p", "model_name": "m", "secret_id": ids["secret_id"]}
        for name in names
        for _ in range(3)
    ]
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda definition: ask("POST", "model-definitions/create", definition), sent)
        )
    assert sorted(status for status, _, _ in answers) == [200] * 4 + [400] * 8
    listed = ask("GET", "model-definitions/list", {})[1]["model_definitions"]
    assert sorted(definition["name"] for definition in listed) == ["m", *names]


@pytest.mark.parametrize("round_", range(4))
def test_a_model_that_an_endpoint_has_is_there(store: Store, round_: int) -> None:
    """Somebody attaches it while somebody else deletes it."""
    ids = filled()
    spare = made(
        "model-definitions/create",
        {"name": "s", "provider": "p", "model_name": "m", "secret_id": ids["secret_id"]},
    )
    model = {"model_definition_id": spare["model_definition_id"], "linkage_type": "PRIMARY"}
    calls = [
        (
            "POST",
            "endpoints/models/attach",
            {"endpoint_id": ids["endpoint_id"], "model_config": model},
        ),
        (
            "DELETE",
            "model-definitions/delete",
            {"model_definition_id": model["model_definition_id"]},
        ),
    ]
    with ThreadPoolExecutor(2) as pool:
        (attached, _, _), (deleted, _, _) = pool.map(lambda call: ask(*call), calls)
    assert {attached, deleted} in ({200, 400}, {200, 404})
    known = configuration.read("default")
    for endpoint in known.endpoints.values():
        for mapping in endpoint.mappings:
            assert mapping.model_definition_id in known.model_definitions


def test_workspaces_keep_it_apart_until_one_takes_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team")
    ids = filled("team")
    filled("default", suffix="d")
    results = {"endpoint_id": ids["endpoint_id"]}
    assert ask("GET", "endpoints/get", results, "team")[0] == 200
    assert ask("GET", "endpoints/get", results)[0] == 404
    assert configuration.names_taken("team", "default") == []
    before = configuration.read("team")
    configuration.move("team", "default")
    configuration.move("team", "default")
    after = configuration.read("default")
    assert ask("GET", "endpoints/get", results, "team")[0] == 404
    shown = ask("GET", "endpoints/get", results)[1]["endpoint"]
    assert shown["model_mappings"][0]["model_definition"]["secret_name"] == "k"
    kept = after.secrets[ids["secret_id"]]
    assert kept.sealed == before.secrets[ids["secret_id"]].sealed
    configuration.clear("default")
    assert [item for item in store.items() if item["PK"]["S"].startswith("GATEWAY#")] == []


@pytest.mark.parametrize("at_once", [1, 45])
@pytest.mark.parametrize("change", ["endpoint", "secret", "deletion", "name"])
def test_a_move_loses_no_change_that_is_made_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch, change: str, at_once: int
) -> None:
    """What was changed is changed in the other workspace, what was deleted is in neither, and no
    name is taken twice."""
    enable_workspaces(monkeypatch, "team")
    monkeypatch.setattr(configuration, "_MOVED_AT_ONCE", at_once)
    ids: dict[str, str] = {}

    def prepare() -> tuple[Act, Act]:
        configuration.clear("default")
        ids.update(filled("team"))
        value = {"secret_value": {"api_key": OTHER}}
        extra = made("secrets/create", {"secret_name": "x", **value}, "team")
        ids["extra"] = extra["secret_id"]
        endpoint, secret = ({name: ids[name]} for name in ("endpoint_id", "secret_id"))
        changes: dict[str, tuple[str, str, dict[str, Any], str]] = {
            "endpoint": ("POST", "endpoints/update", {**endpoint, "name": "f"}, "team"),
            "secret": ("POST", "secrets/update", {**secret, **value}, "team"),
            "deletion": ("DELETE", "secrets/delete", {"secret_id": ids["extra"]}, "team"),
            "name": ("POST", "secrets/create", {"secret_name": "x", **value}, "default"),
        }

        def move() -> None:
            if not configuration.names_taken("team", "default"):
                configuration.move("team", "default")

        def moved() -> None:
            retry_on_conflict("gateway", move)

        return moved, lambda: ask(*changes[change])[0]

    statuses = set()
    for moved, status in meetings(prepare):
        statuses.add(status)
        is_done = status == 200
        assert status in {200, 400, 404}, status
        assert moved is None
        if configuration.names_taken("team", "default"):
            assert (change, is_done) == ("name", True)
            configuration.clear("team")
            continue
        here, there = configuration.read("default"), configuration.read("team")
        assert not there.secrets
        assert not there.endpoints
        secret = here.secrets[ids["secret_id"]]
        opened = secrets.open_sealed(secret.sealed, {"gateway_secret_id": secret.secret_id})
        assert (json.loads(opened)["api_key"] == OTHER) == (change == "secret" and is_done)
        is_renamed = here.endpoints[ids["endpoint_id"]].name == "f"
        assert is_renamed == (change == "endpoint" and is_done)
        assert (ids["extra"] in here.secrets) != (change == "deletion" and is_done)
        secret_names = [each.secret_name for each in here.secrets.values()]
        assert len(set(secret_names)) == len(secret_names)
    assert len(statuses) == 2


def test_names_that_a_move_would_take_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    enable_workspaces(monkeypatch, "team")
    filled("team")
    filled("default")
    assert configuration.names_taken("team", "default") == [
        ("secrets", "k"),
        ("endpoints", "e"),
        ("model_definitions", "m"),
    ]
