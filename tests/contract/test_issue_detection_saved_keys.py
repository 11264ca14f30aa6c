"""Detections whose model is called with a saved key, in place of an endpoint of the AI gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway.app
import gateway_calls.app
from mlcore.entities.gateway import WORKSPACE
from mlcore.repos.gateway import configuration
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import HOUR, Scheduled, sweep, traces_at
from tests.contract.gateway_world import KEY, allow_local, budget, saved_key
from tests.contract.issue_detection_world import Detections, five
from tests.doubles import detective, providers
from tests.doubles.providers import Provider

Json = dict[str, Any]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    allow_local(monkeypatch)
    with providers.serving(detective.answer) as serving:
        yield serving


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Detections:
    return Detections(store.api, monkeypatch, tmp_path)


def fields(provider: Provider, **more: Any) -> Json:
    key = saved_key(f"{provider.url}/v1", "the key")
    return {"endpoint_name": "", "model": "gpt-4o-mini", "secret_id": key, **more}


def test_a_saved_key_finds_what_an_endpoint_finds(world: Detections, provider: Provider) -> None:
    traces = five(world)
    result = world.detect(traces, **fields(provider))
    assert result["issues"] == 2
    assert {request.headers["authorization"] for request in provider.asked} == {f"Bearer {KEY}"}
    assert {request.body["model"] for request in provider.asked} == {"gpt-4o-mini"}
    run = world.run(result["run_id"])
    assert (run["status"], run["tags"]["model"]) == ("FINISHED", "openai:/gpt-4o-mini")
    assert "endpoint_name" not in run["tags"]
    assert KEY not in str(world.job(result["job_id"]))
    assert world.model.asked == [], "no endpoint is asked"
    known = configuration.read("default")
    assert [each.name for each in known.endpoints.values()] == ["e"], "no endpoint is stored"
    assert len(known.model_definitions) == 1


def test_a_deleted_key_is_used_no_more(world: Detections, provider: Provider) -> None:
    asked_with = fields(provider)
    begun = world.begin(five(world), **asked_with)
    removal = {"secret_id": asked_with["secret_id"]}
    path = "/api/3.0/mlflow/gateway/secrets/delete"
    assert called(gateway.app.handler, "DELETE", path, removal).status == 200
    assert world.work() == []
    job = world.job(begun["job_id"])
    assert job["status"] == "FAILED"
    assert f"GatewaySecret not found (secret_id='{asked_with['secret_id']}')" in str(job)
    assert world.run(begun["run_id"])["status"] == "FAILED"
    assert provider.asked == []


def test_budgets_hold_for_saved_keys(world: Detections, provider: Provider) -> None:
    budget(WORKSPACE, 1e-9)
    traces = five(world)
    key = fields(provider)
    world.begin(traces, **key)
    assert world.work() == []
    call_count = len(provider.asked)
    assert 0 < call_count <= 8, "those that were asked at the same time"
    world.begin(traces, **key)
    assert world.work() == []
    assert len(provider.asked) == call_count


def test_a_schedule_asks_with_a_saved_key(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: Provider
) -> None:
    world = Scheduled(store.api, monkeypatch, tmp_path)
    key = saved_key(f"{provider.url}/v1", "the key")
    due = world.save(model={"provider": "openai", "model": "gpt-4o-mini", "secretId": key})
    traces_at(world, due, due - HOUR)
    world.now = due
    sweep()
    assert world.work() == []
    (run,) = world.runs()
    assert (run["status"], run["tags"]["model"]) == ("FINISHED", "openai:/gpt-4o-mini")
    assert {request.headers["authorization"] for request in provider.asked} == {f"Bearer {KEY}"}
    assert KEY not in str(run)


@pytest.mark.parametrize("name", ["openai:/gpt-4o-mini", "saved key"])
def test_no_caller_of_the_gateway_reaches_it(
    world: Detections, provider: Provider, name: str
) -> None:
    """The endpoint that is made for a call cannot be named by others."""
    begun = world.begin(five(world), **fields(provider))
    chat = {"model": name, "messages": [{"role": "user", "content": "Hello"}]}
    path = "/gateway/mlflow/v1/chat/completions"
    assert called(gateway_calls.app.handler, "POST", path, chat).status == 404
    assert world.work() == []
    assert world.job(begun["job_id"])["status"] == "SUCCEEDED"
