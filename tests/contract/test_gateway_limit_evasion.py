"""Nobody gets a fresh counter of a limit or of a budget by another spelling, another route, another
API key, or a changed endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import gateway.app
import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.auth.permissions import GATEWAY_ENDPOINT, Grant
from mlcore.entities.gateway import BudgetPolicy
from mlcore.environment import AUTHENTICATION
from mlcore.gateway.budgets import read_spending
from mlcore.http import lambda_handler
from mlcore.ids import now_ms
from mlcore.repos.gateway import budgets
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import api_keys, grants, users
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import ask
from tests.contract.gateway_world import PRICE, allow_local, budget, endpoint, model
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, openai, serving

Json = dict[str, Any]

SAID: Final = [{"role": "user", "content": "hello"}]
PATH: Final = "mlflow/v1/chat/completions"
SETTING: Final = "gateway_limits"
ROUTES: Final = (
    (PATH, {"messages": SAID}),
    (PATH, {"messages": SAID, "stream": True}),
    ("{name}/mlflow/invocations", {"messages": SAID}),
    ("{name}/mlflow/invocations", {"input": "hello"}),
    ("mlflow/v1/embeddings", {"input": "hello"}),
    ("openai/v1/chat/completions", {"messages": SAID}),
    ("openai/v1/embeddings", {"input": "hello"}),
    ("openai/v1/responses", {"input": "hello"}),
    ("proxy/{name}/v1/chat/completions", {"messages": SAID, "model": "chat"}),
)


@pytest.fixture(autouse=True)
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as running:
        yield running
    stored_settings.delete(SETTING)


class World:
    """The endpoint ``chat``, which ann and bob may use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, provider: Provider) -> None:
        self.model = model("m", "openai", f"{provider.url}/v1", model_name="gpt-4o")
        self.people = {name: users.create(name, "", is_admin=False) for name in ("ann", "bob")}
        self.endpoint_id = ""
        self.create("chat")
        monkeypatch.setenv(AUTHENTICATION, "basic")
        monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._patch = monkeypatch
        self._handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)

    def create(self, name: str) -> None:
        self.endpoint_id = endpoint(name, [self.model])
        for user in self.people.values():
            grants.put(user, "default", Grant(GATEWAY_ENDPOINT, self.endpoint_id, "USE"))

    def change(self, method: str, path: str, **fields: Any) -> None:
        """Changes the endpoint, as those may who administrate it."""
        with self._patch.context() as patch:
            patch.setenv(AUTHENTICATION, "none")
            body = {"endpoint_id": self.endpoint_id, **fields}
            path = f"/api/3.0/mlflow/gateway/endpoints/{path}"
            answer = called(gateway.app.handler, method, path, body)
            assert answer.status == 200, answer

    def rename(self, name: str) -> None:
        self.change("POST", "update", name=name)

    def recreate(self, name: str) -> None:
        self.change("DELETE", "delete")
        with self._patch.context() as patch:
            patch.setenv(AUTHENTICATION, "none")
            self.create(name)

    def status(
        self, name: Any, route: tuple[str, Json] = ROUTES[0], caller: Json | None = None
    ) -> int:
        path, body = route
        if "{name}" in path:
            path = path.format(name=name)
        else:
            body = {**body, "model": name}
        caller = named("ann") if caller is None else caller
        return ask("POST", path, body, handler=self._handler, caller=caller)[0]

    def with_key(self, key: str) -> Json:
        return {"lambda": {"key_user": "ann", "key_id": key, "is_admin": False, "scopes": ""}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, provider: Provider) -> World:
    return World(monkeypatch, provider)


SPELLINGS: Final = (
    *("Chat", "CHAT", "chat ", " chat", "chat\n", "chat\0", "chat/", "/chat", "./chat", "chat?x=1"),
    *("%63hat", "chat%00", "cha\u0074", "ｃｈａｔ", "chat\u200b", "gateway:/chat", "chat;x", "*"),
)


@pytest.mark.parametrize("scope", ["endpoints", "users", "workspaces"])
def test_no_spelling_and_no_route_has_a_counter_of_its_own(
    world: World, provider: Provider, scope: str
) -> None:
    counted = {"endpoints": "chat", "users": "ann", "workspaces": "default"}[scope]
    stored_settings.put(SETTING, {scope: {counted: {"requests_per_day": 3}}})
    assert [world.status("chat") for _ in range(4)] == [200, 200, 200, 429]
    for route in ROUTES:
        assert world.status("chat", route) == 429, route
        for name in (*SPELLINGS, world.endpoint_id, world.endpoint_id.upper(), ["chat"], 1):
            assert world.status(name, route) in {400, 403, 404, 405, 422, 429}, (name, route)
    assert len(provider.asked) == 3


@pytest.mark.parametrize("by_id", [False, True])
def test_an_endpoint_that_is_renamed(world: World, *, by_id: bool) -> None:
    """Its counter belongs to its id, so it goes on, also when the former name comes back. A limit
    by id or for each endpoint holds under each name; one by name for whatever has the name."""
    limit = {"requests_per_day": 2}
    stored_settings.put(SETTING, {"endpoints": {(world.endpoint_id if by_id else "*"): limit}})
    assert [world.status("chat") for _ in range(3)] == [200, 200, 429]
    for name in ("other", "Chat", "chat"):
        world.rename(name)
        assert world.status(name) == 429, name
        assert world.status("former") == 403
    stored_settings.put(SETTING, {"endpoints": {"chat": limit}})
    assert world.status("chat") == 429


def test_an_entry_by_id_counts_before_one_by_name(world: World) -> None:
    limits = {"chat": {"requests_per_day": 1}, world.endpoint_id: {"requests_per_day": 2}}
    stored_settings.put(SETTING, {"endpoints": limits})
    assert [world.status("chat") for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("scope", ["users", "workspaces"])
def test_limits_that_no_change_of_an_endpoint_resets(world: World, scope: str) -> None:
    """What the people who may create endpoints are limited by."""
    stored_settings.put(SETTING, {scope: {"*": {"requests_per_day": 4, "tokens_per_day": 10_000}}})
    assert world.status("chat") == 200
    world.rename("renamed")
    assert world.status("renamed") == 200
    world.recreate("chat")
    assert world.status("chat") == 200
    world.recreate("other")
    assert world.status("other", caller=world.with_key("k1")) == 200
    for caller in (named("ann"), world.with_key("k1"), world.with_key("k2")):
        assert world.status("other", caller=caller) == 429
    assert world.status("other", caller=named("bob")) == (200 if scope == "users" else 429)


def test_several_keys_of_a_user(world: World) -> None:
    """Each key has a counter, and a new key of the same name another one. What limits all of them
    is the user's limit."""
    made = [api_keys.create(world.people["ann"], f"key {n}", "default", None, None) for n in (1, 2)]
    stored_settings.put(
        SETTING,
        {"keys": {"*": {"requests_per_day": 1}}, "users": {"ann": {"requests_per_day": 3}}},
    )
    for key in made:
        caller = world.with_key(key[0].key_id)
        assert [world.status("chat", caller=caller) for _ in range(2)] == [200, 429]
    api_keys.delete(made[0][0].key_id)
    again = api_keys.create(world.people["ann"], "key 1", "default", None, None)[0]
    caller = world.with_key(again.key_id)
    assert [world.status("chat", caller=caller) for _ in range(2)] == [200, 429]
    more = api_keys.create(world.people["ann"], "key 3", "default", None, None)[0]
    assert world.status("chat", caller=world.with_key(more.key_id)) == 429
    assert world.status("chat") == 429
    assert world.status("chat", caller=named("bob")) == 200


def test_a_user_who_is_created_again_goes_on_counting(world: World) -> None:
    stored_settings.put(SETTING, {"users": {"*": {"requests_per_day": 2}}})
    assert [world.status("chat") for _ in range(3)] == [200, 200, 429]
    users.delete(users.get_profile("ann"))
    again = users.create("ann", "", is_admin=False)
    grants.put(again, "default", Grant(GATEWAY_ENDPOINT, world.endpoint_id, "USE"))
    assert world.status("chat") == 429


def test_budgets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's and a workspace's stay through every change; an endpoint's through each new name."""
    now = now_ms()
    of_ann = BudgetPolicy(
        *("bp-ann", "default", "USD", 2.5 * PRICE, "DAYS", 1, "USER", "REJECT", "ann"),
        *(None, None, now, now),
    )
    budgets.write(of_ann)
    with monkeypatch.context() as patch:
        patch.setenv(AUTHENTICATION, "none")
        of_endpoint = budget("ENDPOINT", 1.5 * PRICE, target=world.endpoint_id)
        budget("WORKSPACE", 5.5 * PRICE)
    assert world.status("chat") == 200
    world.rename("renamed")
    assert [world.status("renamed", caller=named("bob")) for _ in range(2)] == [200, 429]
    world.rename("chat")
    assert world.status("chat", caller=named("bob")) == 429
    world.recreate("chat")  # its budget is that of the former endpoint, by id
    assert [world.status("chat"), world.status("chat")] == [200, 200]
    for caller in (named("ann"), world.with_key("k1")):
        assert world.status("chat", caller=caller) == 429
    spent = dict(
        zip(
            [policy.budget_policy_id for policy in budgets.find_all()],
            read_spending(budgets.find_all(), now_ms()),
            strict=True,
        )
    )
    assert spent["bp-ann"] == pytest.approx(3 * PRICE)
    assert spent[of_endpoint] == pytest.approx(2 * PRICE)
    assert [world.status("chat", caller=named("bob")) for _ in range(3)] == [200, 200, 429]
    world.recreate("other")
    assert world.status("other", caller=named("bob")) == 429
