"""MCP servers and the gateway's configuration come over from an MLflow server as they are, but for
the values of secrets: once, again, and after a kill at any write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
import gateway.app
import mcp_servers.app
from mlcore import errors
from mlcore.gateway.secret_values import open_values
from mlcore.repos.gateway import budgets, configuration
from operate.transfer import command
from operate.transfer import gateway as gateway_parts
from operate.transfer.command import TransferOptions
from operate.transfer.mlflow_client import SourceFailed
from tests.contract import gateway_world
from tests.contract.api import Api, called
from tests.contract.conftest import Store, pointed
from tests.contract.old_product import (
    API_3,
    Answers,
    Stock,
    killed_after,
    kills_until_done,
    recorded,
)
from tests.contract.sealing import seal_here
from tests.engines import Engine, create_table

PARTS = ("evaluation", "gateway", "mcp-servers")
NAME = "com.example/weather"
ICON = {"src": "https://8.8.8.8/i.png", "mimeType": "image/png", "theme": "dark"}


def mcp(method: str, path: str, **body: Any) -> Any:
    answer = called(mcp_servers.app.handler, method, f"/{API_3}mcp-servers{path}", body)
    assert answer.status == 200, answer
    return answer.body


def configure(method: str, path: str, **body: Any) -> Any:
    answer = called(gateway.app.handler, method, f"/{API_3}gateway/{path}", body)
    assert answer.status == 200, answer
    return answer.body


def populate_registry() -> None:
    mcp("POST", "", name="com.example/bare")
    mcp("POST", "", name=NAME, icons=[ICON])
    for number, status in (("1.0.0", "active"), ("1.1.0", "draft"), ("2.0.0-rc.1", "draft")):
        server_json = {
            "name": NAME,
            "version": number,
            "description": f"weather {number}",
            "icons": [{**ICON, "theme": "light"}],
            "packages": [{"registryType": "npm", "identifier": "w", "transport": {"type": "sse"}}],
        }
        tools = [{"name": "ask", "inputSchema": {"type": "object"}, "title": "Ask"}]
        mcp(
            "POST",
            f"/{NAME}/versions",
            server_json=server_json,
            status=status,
            source="git",
            tools=tools if status == "active" else None,
            connect_options={"npm": {"hidden": True}} if status == "active" else None,
        )
    mcp("DELETE", f"/{NAME}/versions/1.1.0")
    mcp("POST", f"/{NAME}/versions/1.0.0/tags", key="tested", value="yes")
    mcp("POST", f"/{NAME}/tags", key="team", value="ü")
    mcp("POST", f"/{NAME}/aliases", alias="stable", version="1.0.0")
    for target in ({"server_alias": "stable"}, {"server_version": "2.0.0-rc.1"}):
        mcp("POST", f"/{NAME}/endpoints", url="https://example.com/mcp", **target)
    mcp("POST", f"/{NAME}/endpoints", url="https://e.com", server_alias="latest")


def populate_gateway() -> None:
    first = gateway_world.model("first", "openai", auth_config={"api_version": "1"})
    second = gateway_world.model("second", "anthropic")
    by_role = gateway_world.model("role", "bedrock", secret={}, auth_config={"auth_mode": "x"})
    lost = gateway_world.model("lost", "gemini")
    known = configuration.read("default")
    configure("DELETE", "secrets/delete", secret_id=known.model_definitions[lost].secret_id)
    judge = gateway_world.endpoint("judge", [first], [second, by_role], usage_tracking=True)
    other = gateway_world.endpoint("other", [lost], routing_strategy="REQUEST_BASED_TRAFFIC_SPLIT")
    configure("POST", "endpoints/set-tag", endpoint_id=judge, key="k", value="v")
    experiment_id = Api().post("experiments/create", name="judged")["experiment_id"]
    asking = {"name": "asks", "instructions_judge_pydantic_data": {"model": "gateway:/judge"}}
    scorer = {"experiment_id": experiment_id, "name": "asks", "serialized_scorer": asking}
    registered = called(
        evaluation.app.handler,
        "POST",
        f"/{API_3}scorers/register",
        {**scorer, "serialized_scorer": json.dumps(asking)},
    ).body
    for action, more in (("VALIDATION", {}), ("SANITIZATION", {"action_endpoint_id": judge})):
        made = configure(
            "POST",
            "guardrails/create",
            name="polite",
            scorer_id=registered["scorer_id"],
            scorer_version=1,
            stage="BEFORE",
            action=action,
            **more,
        )
        fields = {"endpoint_id": other, "guardrail_id": made["guardrail"]["guardrail_id"]}
        configure("POST", "guardrails/add-to-endpoint", **fields, execution_order=len(more))
    configure("POST", "endpoints/bindings/create", **bound(other, "of old"))
    for scope, target in (("ENDPOINT", {"target_value": judge}), ("GLOBAL", {})):
        configure(
            "POST",
            "budgets/create",
            budget_unit="USD",
            budget_amount=1.5,
            duration={"unit": "DAYS", "value": 3},
            target_scope=scope,
            budget_action="REJECT",
            created_by="ann",
            **target,
        )


def bound(endpoint_id: str, resource_id: str) -> dict[str, Any]:
    return {"endpoint_id": endpoint_id, "resource_type": "scorer", "resource_id": resource_id}


@pytest.fixture
def answers(
    store: Store, table_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Answers]:
    """What the server told; the product works on another table, which is empty."""
    monkeypatch.setattr(command, "Server", Stock)
    monkeypatch.setattr(Stock, "answers", {})
    seal_here(monkeypatch, tmp_path)
    populate_registry()
    populate_gateway()
    recorded(lambda: transfer(write=False))
    with pointed(table_engine.endpoint, create_table(table_engine.endpoint)):
        yield dict(Stock.answers)


def transfer(*, write: bool = True, journal: Path | None = None) -> int:
    return command.run(TransferOptions("http://old", [], PARTS, journal, write))


def plain(answers: Answers) -> list[str]:
    """All that is told, but for tokens of pages and what is shown of secrets' values."""
    shown = []
    for key, answer in answers.items():
        text = json.dumps([key, answer], sort_keys=True)
        shown.append(text.replace(gateway_parts.NOT_MOVED, MASKED))
    return sorted(shown)


MASKED = "sk-...ghij"


def test_it_comes_over_once(answers: Answers, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert MASKED in json.dumps(answers)
    assert transfer() == 0
    assert "the gateway's secret 'key of first' has no value" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        killed_after(0, patch)
        assert transfer() == 0
    assert transfer(write=False) == 0
    mine = recorded(lambda: transfer(write=False))
    assert plain(mine) == plain(answers)
    server = mcp("GET", f"/{NAME}")
    assert server["icons"] == [
        {**ICON, "source": "server"},
        {**ICON, "theme": "light"} | {"source": "version"},
    ]
    # It goes on here as it would there: the alias leads its endpoint elsewhere.
    mcp("POST", f"/{NAME}/aliases", alias="stable", version="2.0.0-rc.1")
    led = {
        mcp_access_endpoint["resolved_version"]["version"]
        for mcp_access_endpoint in mcp("GET", f"/{NAME}/endpoints")["mcp_access_endpoints"]
    }
    assert led == {"1.0.0", "2.0.0-rc.1"}


def test_a_killed_import_goes_on(answers: Answers) -> None:
    """Each attempt gets one write further than the last."""
    assert kills_until_done(transfer) > 3
    assert plain(recorded(lambda: transfer(write=False))) == plain(answers)


def test_names_that_the_target_has_lead_to_its_own_parts(answers: Answers, capsys: Any) -> None:
    taken = gateway_world.model("first", "mistral", secret={"api_key": "its own"})
    judge = gateway_world.endpoint("judge", [taken])
    own = gateway_world.endpoint("own", [taken])
    Api().post("experiments/create", name="in the way")
    assert transfer() == 0
    assert "'key of first'" not in capsys.readouterr().err
    known = configuration.read("default")
    endpoint = known.endpoints[judge]
    assert {mapping.model_definition_id for mapping in endpoint.mappings} > {taken}
    definition = known.model_definitions[taken]
    secret = known.secrets[definition.secret_id]
    assert (definition.provider, secret.provider) == ("openai", "mistral")
    assert open_values(secret) == {"api_key": "its own"}
    assert [binding.display_name for binding in endpoint.bindings] == ["asks"]
    traced = Api().get("experiments/get", experiment_id=endpoint.experiment_id)["experiment"]
    assert traced["name"] == "gateway/judge"
    targets = {budget.target_value for budget in budgets.of_workspace("default")}
    assert targets == {None, judge}
    sanitizing = [
        guardrail for guardrail in known.guardrails.values() if guardrail.action_endpoint_id
    ]
    assert [action_endpoint.action_endpoint_id for action_endpoint in sanitizing] == [judge]
    for guardrail in known.guardrails.values():
        assert f"gateway:/{judge}" in guardrail.scorer.serialized_scorer
    assert transfer(write=False) == 0
    assert f"gateway endpoint {own}: only in the target" in capsys.readouterr().err


def test_a_secret_waits_for_its_value(answers: Answers) -> None:
    assert transfer() == 0
    known = configuration.read("default")
    named = {secret.secret_name: secret for secret in known.secrets.values()}
    assert open_values(named["key of role"]) == {}
    secret = named["key of second"]
    with pytest.raises(errors.GatewayCallFailed, match="'key of second' has no value") as refused:
        open_values(secret)
    assert refused.value.status == 401
    changed = {"secret_id": secret.secret_id, "secret_value": {"api_key": gateway_world.KEY}}
    told_now = configure("POST", "secrets/update", **changed)["secret"]
    assert told_now["masked_values"] == {"api_key": MASKED}
    # From now on it is the target's own.
    assert transfer(write=False) == 0
    assert transfer() == 0
    (kept,) = [
        stored
        for stored in configuration.read("default").secrets.values()
        if stored.secret_id == secret.secret_id
    ]
    assert open_values(kept) == {"api_key": gateway_world.KEY}


def test_differences_are_named(answers: Answers, tmp_path: Path, capsys: Any) -> None:
    journal = tmp_path / "journal"
    assert transfer(journal=journal) == 0
    (endpoint_id,) = [
        endpoint.endpoint_id
        for endpoint in configuration.read("default").endpoints.values()
        if endpoint.name == "other"
    ]
    # At the target somebody changes what came, and makes something.
    configure("POST", "endpoints/update", endpoint_id=endpoint_id, name="another")
    configure("DELETE", "endpoints/bindings/delete", **bound(endpoint_id, "of old"))
    mcp("DELETE", f"/{NAME}/tags/team")
    mcp("DELETE", f"/{NAME}/versions/2.0.0-rc.1")
    mcp("POST", "", name="com.example/own")
    # On the server somebody deletes.
    (servers,) = [
        answer["mcp_servers"] for answer in Stock.answers.values() if "mcp_servers" in answer
    ]
    servers[:] = [server for server in servers if server["name"] == NAME]
    capsys.readouterr()
    assert transfer(write=False, journal=journal) == 1
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert 'gateway endpoint \'other\': name: "other" ≠ "another"' in lines
    assert f"gateway binding {endpoint_id}/scorer/of old: not in the target" in lines
    assert f'MCP server {NAME}: tags.team: "ü" ≠ nothing' in lines
    assert f"MCP server {NAME}: versions.2.0.0-rc.1: " in output.out
    assert "MCP server default/com.example/bare: deleted on the server" in lines
    assert "MCP server default/com.example/own: only in the target" in output.err.splitlines()
    assert transfer(journal=journal) == 0
    versions = mcp("GET", f"/{NAME}/versions")["mcp_server_versions"]
    assert {version["version"] for version in versions} == {"1.0.0", "2.0.0-rc.1"}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(404, "", 0), (500, "", 0), (500, "INTERNAL_ERROR", 1), (403, "PERMISSION_DENIED", 1)],
)
def test_of_a_server_without_them_nothing_comes(
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    status: int,
    code: str,
    expected: int,
) -> None:
    """An old one has no such route, and one that keeps its data in files breaks. Of other failures
    the command ends as one that failed; who may not ask for guardrails hears it at last."""
    refused = ("gateway/guardrails",) if status == 403 else ("gateway", "mcp-servers")

    class Other(Stock):
        def _answer(self, method: str, path: str, fields: dict[str, Any]) -> Any:
            if path.startswith(tuple(API_3 + prefix for prefix in refused)):
                raise SourceFailed(status, "no", code)
            if path.startswith(f"{API_3}scorers"):
                raise SourceFailed(404, "Not Found")
            return super()._answer(method, path, fields)

    monkeypatch.setattr(command, "Server", Other)
    assert transfer() == expected
    endpoints = configuration.read("default").endpoints
    assert bool(endpoints) == (status == 403)
    if status == 403:
        assert "guardrails of the gateway: no" in capsys.readouterr().err
