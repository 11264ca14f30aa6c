"""A saved key goes to its own provider only, unless somebody who may update it says otherwise."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway.app
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.ids import now_ms
from mlcore.repos.evaluation import detection_schedules, jobs
from mlcore.repos.gateway import configuration
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import DAILY, Scheduled, sweep, traces_at
from tests.contract.gateway_world import allow_local, saved_key
from tests.contract.issue_detection_world import five
from tests.contract.logins import called_as, named
from tests.contract.sealing import seal_here
from tests.contract.threads import at_once
from tests.doubles import detective, providers
from tests.doubles.providers import Provider

Json = dict[str, Any]
DEFINITIONS = "/api/3.0/mlflow/gateway/model-definitions"
REFUSAL = "The saved API key 'the key' is for the provider 'OpenAI', so it cannot be used with"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    allow_local(monkeypatch)
    with providers.serving(detective.answer) as serving:
        yield serving


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scheduled:
    return Scheduled(store.api, monkeypatch, tmp_path)


@pytest.mark.parametrize("name", ["groq", "Groq", "ollama", "azure", "bedrock"])
def test_another_provider_is_refused(world: Scheduled, provider: Provider, name: str) -> None:
    key = saved_key(f"{provider.url}/v1", "the key", "OpenAI")
    fields = {"endpoint_name": "", "model": "m", "secret_id": key}
    answer = world.request(five(world), **fields, provider=name)
    assert answer.status == 400
    assert answer.body["error_code"] == "INVALID_PARAMETER_VALUE"
    assert answer.body["message"] == f"{REFUSAL} '{name.lower()}'."
    world.set_tag(
        "mlflow.issueDetection.schedule",
        json.dumps({**DAILY, "model": {"provider": name, "model": "m", "secretId": key}}),
    )
    confirmed = world.confirm()
    assert (confirmed.status, confirmed.body) == (answer.status, answer.body)
    assert world.stored() is None
    assert (world.runs(), list(jobs.of_workspace("default"))) == ([], [])
    assert provider.asked == []


@pytest.mark.parametrize(
    ("stored", "named_as"),
    [("OpenAI", "openai"), ("openai", "OPENAI"), ("", "openai"), ("Amazon-Bedrock", "bedrock")],
)
def test_the_same_provider(
    world: Scheduled, provider: Provider, stored: str, named_as: str
) -> None:
    """In any case of letters, by any of its names; and that of a key for which none is stored."""
    key = saved_key(f"{provider.url}/v1", "the key", stored)
    model = {"provider": named_as, "model": "m", "secretId": key}
    assert world.save(model=model) is not None
    fields = {"endpoint_name": "", "model": "m", "secret_id": key, "provider": named_as}
    assert world.request(five(world), **fields).status == 200


def test_a_schedule_and_a_job_that_were_stored_before(world: Scheduled, provider: Provider) -> None:
    """By a release that did not look."""
    key = saved_key(f"{provider.url}/v1", "the key", "OpenAI")
    due = world.save(model={"provider": "openai", "model": "m", "secretId": key})
    traces = traces_at(world, due)
    text = json.dumps({**DAILY, "model": {"provider": "groq", "model": "m", "secretId": key}})
    world.set_tag("mlflow.issueDetection.schedule", text)
    stored = world.stored()
    assert stored is not None
    detection_schedules.put(stored._replace(schedule_text=text))
    world.now = due
    sweep()
    (run,) = world.runs()
    assert run["status"] == "FAILED"
    assert f"{REFUSAL} 'groq'." in run["tags"]["mlflow.issueDetection.error"]
    assert (world.stored(), world.queue.waiting) == (None, [])

    fields = {"endpoint_name": "", "model": "m", "secret_id": key, "provider": "openai"}
    begun = world.begin(traces, **fields)
    params = {"saved_key": [key, "groq", "m"]}
    jobs.change(
        "default",
        begun["job_id"],
        lambda job: job._replace(params={**job.params, **params}),
    )
    assert world.work() == []
    assert world.job(begun["job_id"])["status"] == "FAILED"
    assert provider.asked == []


class Definitions:
    """A member who may use, and not update, a key of each kind; and model definitions."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        seal_here(patch, folder)
        self.keys = {name: saved_key("", f"key {name}", name) for name in ("openai", "groq", "")}
        self.user = users.create("member", "", is_admin=False)
        self.owner = users.create("owner", "", is_admin=False)
        for key in self.keys.values():
            grants.put(self.user, "default", Grant("gateway_secret", key, "USE"))
            grants.put(self.owner, "default", Grant("gateway_secret", key, "EDIT"))
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(gateway.app.RPCS)
        self._number = 0

    def ask(self, user: str, path: str, /, **fields: Any) -> tuple[int, Json | str]:
        status, text = called_as(
            named(user), self._handler, "POST", f"{DEFINITIONS}/{path}", json.dumps(fields)
        )
        return status, json.loads(text) if text.startswith("{") else text

    def create(self, user: str, secret_id: str, provider: str) -> tuple[int, Any]:
        self._number += 1
        return self.ask(
            user,
            "create",
            name=f"d{self._number}",
            secret_id=secret_id,
            provider=provider,
            model_name="m",
        )

    def leaks(self) -> list[tuple[str | None, str]]:
        """Providers of keys, and those to which definitions send them instead."""
        known = configuration.read("default")
        return [
            (secret.provider, definition.provider)
            for definition in known.model_definitions.values()
            if (secret := known.secrets[definition.secret_id])
            and secret.provider not in (None, definition.provider.lower())
        ]


@pytest.fixture
def definitions(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Definitions:
    return Definitions(monkeypatch, tmp_path)


def test_definitions_of_who_may_only_use_a_key(definitions: Definitions) -> None:
    """Whatever they create and change, in any order, no key goes to another provider."""
    names = ("openai", "OpenAI", "groq", "x")
    fits = {"openai": {"openai", "OpenAI"}, "groq": {"groq"}, "": set(names)}
    for (kind, key), name in itertools.product(definitions.keys.items(), names):
        status, body = definitions.create("member", key, name)
        assert status == (200 if name in fits[kind] else 400), (kind, name, body)
        if status == 400:
            assert body["error_code"] == "INVALID_PARAMETER_VALUE"
            assert f"'{kind}'" in body["message"]
            assert f"'{name}'" in body["message"]
            continue
        made = body["model_definition"]["model_definition_id"]
        for kind_after, name_after in itertools.product((None, *fits), (None, *names)):
            fields = {"model_definition_id": made, "model_name": "m2"}
            if kind_after is not None:
                fields["secret_id"] = definitions.keys[kind_after]
            if name_after is not None:
                fields["provider"] = name_after
            status, _ = definitions.ask("member", "update", **fields)
            assert status in {200, 400}
            stored = configuration.read("default").model_definitions[made]
            if status == 200:
                assert kind_after is None or stored.secret_id == definitions.keys[kind_after]
                assert name_after is None or stored.provider == name_after
            assert definitions.leaks() == []


def test_changes_at_once_do_not_add_up_to_a_leak(definitions: Definitions) -> None:
    """Each is allowed alone: another provider for a key without one, and a key of a provider."""
    made = definitions.create("member", definitions.keys[""], "openai")[1]
    definition = made["model_definition"]["model_definition_id"]
    start = {
        "model_definition_id": definition,
        "secret_id": definitions.keys[""],
        "provider": "openai",
    }
    changes: list[Json] = [{"provider": "groq"}, {"secret_id": definitions.keys["openai"]}]
    for _ in range(10):
        assert definitions.ask("member", "update", **start)[0] == 200

        def change(number: int) -> None:
            fields = {"model_definition_id": definition, **changes[number % 2]}
            assert definitions.ask("member", "update", **fields)[0] in {200, 400}

        at_once(4, change)
        assert definitions.leaks() == []


def test_who_may_update_a_key_chooses(
    definitions: Definitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As everybody does without logins, and on MLflow's server. Others may then change what has
    nothing to do with it."""
    key = definitions.keys["openai"]
    status, body = definitions.create("owner", key, "groq")
    assert status == 200
    made = body["model_definition"]["model_definition_id"]
    grants.put(definitions.user, "default", Grant("gateway_model_definition", made, "EDIT"))
    renamed = {"model_definition_id": made, "name": "renamed", "provider": "groq"}
    assert definitions.ask("member", "update", **renamed)[0] == 200
    assert definitions.ask("member", "update", **{**renamed, "provider": "xai"})[0] == 400
    stranger = users.create("stranger", "", is_admin=False)
    assert stranger.user_id
    assert definitions.create("stranger", key, "groq") == definitions.create(
        "stranger", key, "openai"
    )
    monkeypatch.setenv(AUTHENTICATION, "none")
    open_handler = lambda_handler(gateway.app.RPCS)
    sent = {"name": "open", "secret_id": key, "provider": "xai", "model_name": f"m{now_ms()}"}
    status, _ = called_as({}, open_handler, "POST", f"{DEFINITIONS}/create", json.dumps(sent))
    assert status == 200
