"""Limits of the gateway: as many requests and tokens pass as the setting says, in a minute and a
day, for each key, user, endpoint and workspace, and nobody uses up or escapes another's limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gateway_calls.app
import workspaces.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore import ids
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.auth.permissions import GATEWAY_ENDPOINT, Grant
from mlcore.entities.gateway_limits import CallLimits
from mlcore.environment import AUTHENTICATION
from mlcore.errors import InvalidParameterValue
from mlcore.gateway import rate_limits
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from mlcore.repos.gateway import open_calls, usage
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import api_keys, grants, users
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import ask, events_of, post, respond
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.doubles.providers import openai, serving

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
PATH = "mlflow/v1/chat/completions"
TOKENS = 18
"""Of one chat with the double."""
SETTING = "gateway_limits"


class Clock:
    def __init__(self) -> None:
        self.now = ids.now_ms() // usage.DAY_MS * usage.DAY_MS + usage.MINUTE_MS

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(rate_limits, "now_ms", made)
    return made


@pytest.fixture(autouse=True)
def endpoint_id(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Clock
) -> Iterator[str]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as provider:
        models = [model("m", "openai", provider.url, model_name="gpt-4o")]
        made = endpoint("chat", models)
        endpoint("other", models)
        yield made
    stored_settings.delete(SETTING)


def statuses(calls: int, name: str = "chat", **more: Any) -> list[int]:
    return [post(PATH, {**CHAT, "model": name, **more})[0] for _ in range(calls)]


def test_requests_of_an_endpoint(clock: Clock) -> None:
    stored_settings.put(
        SETTING, {"endpoints": {"chat": {"requests_per_minute": 2, "requests_per_day": 3}}}
    )
    assert statuses(3) == [200, 200, 429]
    assert statuses(2, "other") == [200, 200]
    clock.now += usage.MINUTE_MS
    assert statuses(2) == [200, 429]
    clock.now += usage.DAY_MS
    assert statuses(2) == [200, 200]


def test_each_has_a_limit_of_its_own() -> None:
    stored_settings.put(SETTING, {"endpoints": {"*": {"requests_per_day": 1}}})
    assert statuses(2) == [200, 429]
    assert statuses(2, "other") == [200, 429]


@pytest.mark.parametrize("more", [{}, {"stream": True}])
def test_tokens(clock: Clock, more: dict[str, Any]) -> None:
    """They are known after a call, so the call that crosses the limit still passes."""
    stored_settings.put(SETTING, {"workspaces": {"default": {"tokens_per_minute": TOKENS + 1}}})
    assert statuses(3, **more) == [200, 200, 429]
    clock.now += usage.MINUTE_MS
    assert statuses(1, **more) == [200]


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"


def _told(path: str, **more: Any) -> dict[str, str]:
    """The headers about limits of an answer."""
    body = {"model": "chat", **CHAT, **more}
    answer = respond("POST", path, body)
    assert answer["statusCode"] == 200, answer
    return {name: value for name, value in answer["headers"].items() if "ratelimit" in name}


def test_an_answer_says_what_remains(clock: Clock) -> None:
    """Of each kind the tightest limit, by both names; without limits nothing."""
    assert _told(PATH) == {}
    stored_settings.put(
        SETTING,
        {
            "endpoints": {"chat": {"requests_per_minute": 9, "requests_per_day": 5}},
            "workspaces": {"default": {"tokens_per_minute": 100, "requests_per_day": 50}},
        },
    )
    day_end = (clock.now // usage.DAY_MS + 1) * usage.DAY_MS
    proxied = "proxy/chat/v1/chat/completions"
    paths = (PATH, "openai/v1/chat/completions", proxied)
    for number, path in enumerate(paths):
        assert _told(path) == {
            "x-ratelimit-limit-requests": "5",
            "x-ratelimit-remaining-requests": str(4 - number),
            "x-ratelimit-reset-requests": f"{(day_end - clock.now) // 1000}s",
            "x-ratelimit-limit-tokens": "100",
            "x-ratelimit-remaining-tokens": str(100 - number * TOKENS),
            "x-ratelimit-reset-tokens": "60s",
            "anthropic-ratelimit-requests-limit": "5",
            "anthropic-ratelimit-requests-remaining": str(4 - number),
            "anthropic-ratelimit-requests-reset": _moment(day_end),
            "anthropic-ratelimit-tokens-limit": "100",
            "anthropic-ratelimit-tokens-remaining": str(100 - number * TOKENS),
            "anthropic-ratelimit-tokens-reset": _moment(clock.now + usage.MINUTE_MS),
        }


@pytest.mark.parametrize("path", [PATH, "openai/v1/chat/completions"])
def test_a_stream_says_it_before_its_first_part(path: str) -> None:
    stored_settings.put(SETTING, {"endpoints": {"*": {"requests_per_day": 7}}})
    assert _told(path, stream=True)["x-ratelimit-remaining-requests"] == "6"


def test_the_refusal(clock: Clock) -> None:
    stored_settings.put(SETTING, {"endpoints": {"chat": {"requests_per_minute": 1}}})
    clock.now += 1
    answers = [
        called(gateway_calls.app.handler, "POST", f"/gateway/{PATH}", {**CHAT, "model": "chat"})
        for _ in range(2)
    ]
    assert answers[0].status == 200
    assert answers[1].body["detail"] == (
        "Rate limit reached: 1 requests per minute for this endpoint. Try again in 60 seconds."
    )
    headers = {k: v for k, v in answers[1].headers.items() if "rate" in k or "retry" in k}
    assert headers == {
        "retry-after": "60",
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "60s",
        "anthropic-ratelimit-requests-limit": "1",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": _moment(clock.now - 1 + usage.MINUTE_MS),
    }
    # A stream is refused with its status, not with an event.
    status, _, text = post(PATH, {**CHAT, "model": "chat", "stream": True})
    assert (status, events_of(text)) == (429, [])


def test_requests_at_the_same_time(clock: Clock) -> None:
    limits = CallLimits(requests_per_minute=100)

    def count(_: int) -> bool:
        try:
            usage.count("user:crowd", limits, clock(), usage.UsageClaim(requests=1))
        except usage.LimitReached:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(count, range(160))) == 100


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 90_000), st.integers(0, 5)), max_size=12),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_counts_are_those_of_a_list(
    store: Store, steps: list[tuple[bool, int, int]], per_minute: int, per_day: int
) -> None:
    """What passes is what a list of all requests and tokens says."""
    target, now = f"user:{ids.new_ulid()}", usage.DAY_MS * 20_000
    limits = CallLimits(per_minute, per_day, 7, 11)
    passed: list[int] = []
    tokens: list[tuple[int, int]] = []
    for is_request, pause, amount in steps:
        now += pause
        minute, day = now // usage.MINUTE_MS, now // usage.DAY_MS
        if not is_request:
            usage.count(target, CallLimits(), now, usage.UsageClaim(tokens=amount))
            tokens.append((now, amount))
            continue
        allowed = (
            sum(at // usage.MINUTE_MS == minute for at in passed) < per_minute
            and sum(at // usage.DAY_MS == day for at in passed) < per_day
            and sum(n for at, n in tokens if at // usage.MINUTE_MS == minute) < 7
            and sum(n for at, n in tokens if at // usage.DAY_MS == day) < 11
        )
        try:
            usage.count(target, limits, now, usage.UsageClaim(requests=1))
        except usage.LimitReached:
            assert not allowed
        else:
            assert allowed
            passed.append(now)


def as_user(handler: Handler, caller: dict[str, Any], **headers: str) -> int:
    return ask(
        "POST", PATH, {**CHAT, "model": "chat"}, handler=handler, caller=caller, headers=headers
    )[0]


def test_users_and_keys(endpoint_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not call counts nowhere, and no header or spelling names another user or key."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    for name in ("ann", "bob", "eve"):
        user = users.create(name, "", is_admin=False)
        if name != "eve":
            grants.put(user, "default", Grant(GATEWAY_ENDPOINT, endpoint_id, "USE"))
    stored_settings.put(
        SETTING,
        {
            "users": {"ann": {"requests_per_day": 2}},
            "keys": {"k1": {"requests_per_day": 1}},
            "endpoints": {"chat": {"requests_per_day": 6}},
        },
    )
    key = {"lambda": {"key_user": "bob", "key_id": "k1", "is_admin": False, "scopes": ""}}
    assert [as_user(handler, named("eve")) for _ in range(9)] == [403] * 9
    assert [as_user(handler, key) for _ in range(2)] == [200, 429]
    assert [as_user(handler, named("ann")) for _ in range(3)] == [200, 200, 429]
    for headers in ({"x-user": "bob"}, {"username": "bob"}, {"x_mlflow_gateway_caller": "judge"}):
        assert as_user(handler, named("ann"), **headers) == 429
    # Bob is not limited himself; refused calls of narrower limits did not count to the endpoint.
    assert [as_user(handler, named("bob")) for _ in range(4)] == [200, 200, 200, 429]


def listed(caller: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """What the caller is shown: used by scope and name."""
    event = {
        "rawPath": "/api/3.0/mlflow-serverless/gateway-limits",
        "headers": headers,
        "requestContext": {"http": {"method": "GET"}, "authorizer": caller or {}},
    }
    answer = lambda_handler(workspaces.app.RPCS)(event, None)
    text = str(answer["body"])
    assert answer["statusCode"] == 200, text
    return {
        f"{entry['scope']}/{entry['name']}": {
            name: value["used"] for name, value in entry.items() if name not in ("scope", "name")
        }
        for entry in json.loads(text)["limits"]
    }


def test_what_is_used_of_the_limits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "now_ms", clock)
    assert listed() == {}
    limits = {"requests_per_minute": 5, "requests_per_day": 9, "tokens_per_minute": 1000}
    stored_settings.put(
        SETTING, {"endpoints": {"*": limits}, "workspaces": {"default": {"tokens_per_day": 9000}}}
    )
    assert statuses(2) == [200, 200]
    clock.now += usage.MINUTE_MS
    assert statuses(1) == [200]
    assert statuses(1, "other") == [200]
    used = {"requests_per_minute": 1, "requests_per_day": 3, "tokens_per_minute": TOKENS}
    assert listed() == {
        "endpoints/chat": used,
        "endpoints/other": {**used, "requests_per_day": 1},
        "workspaces/default": {"tokens_per_day": 4 * TOKENS},
    }
    clock.now += usage.DAY_MS
    assert listed()["endpoints/chat"] == dict.fromkeys(used, 0)


def test_calls_that_are_open_are_listed(
    clock: Clock, endpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "now_ms", clock)
    stored_settings.put(SETTING, {"endpoints": {"chat": {"concurrent_calls": 4}}})
    target, now = rate_limits.target("endpoints", endpoint_id), clock.now // 1000
    for seconds in (5, 60):
        open_calls.begin(target, open_calls.new_call(now + seconds), 4, now)
    assert listed() == {"endpoints/chat": {"concurrent_calls": 2}}
    clock.now += 10_000
    assert listed() == {"endpoints/chat": {"concurrent_calls": 1}}, "the lease of one is over"


def test_nobody_sees_the_limits_of_others(
    endpoint_id: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "now_ms", clock)
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    people = {
        name: users.create(name, "", is_admin=name == "root") for name in ("ann", "bob", "root")
    }
    grants.put(people["ann"], "default", Grant(GATEWAY_ENDPOINT, endpoint_id, "USE"))
    key = api_keys.create(people["ann"], "mine", "default", None, None)[0]
    daily = {"requests_per_day": 7}
    stored_settings.put(
        SETTING,
        {
            "users": {"*": daily, "carl": daily},
            "keys": {"*": daily, "k9": daily},
            "endpoints": {"*": daily},
            "workspaces": {"*": daily, "far": daily},
        },
    )
    own = {"users/ann", f"keys/{key.key_id}", "endpoints/chat", "workspaces/default"}
    assert set(listed(named("ann"))) == own
    assert set(listed(named("bob"))) == {"users/bob", "workspaces/default"}
    every = {"users/root", "users/carl", "keys/k9", "endpoints/chat", "endpoints/other"}
    assert set(listed(named("root", is_admin=True))) == every | {
        "workspaces/default",
        "workspaces/far",
    }
    # No header, spelling or argument shows those of somebody else.
    for headers in ({"x-user": "root"}, {"username": "ann"}, {"x-mlflow-user": "ann"}):
        assert set(listed(named("bob"), **headers)) == {"users/bob", "workspaces/default"}
    # A key for one endpoint shows nothing of its owner.
    for scope, shown in ((f"gateway:{endpoint_id}", {"endpoints/chat"}), ("experiment:1", set())):
        scopes = KeyLimits("default", (scope,)).encoded()
        caller = {"key_user": "ann", "key_id": key.key_id, "is_admin": False, "scopes": scopes}
        assert set(listed({"lambda": caller})) == {f"keys/{key.key_id}", *shown}


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"teams": {}},
        {"users": []},
        {"users": {"ann": {}}},
        {"users": {"": {"requests_per_day": 1}}},
        {"users": {"ann": {"requests_per_hour": 1}}},
        {"users": {"ann": {"requests_per_day": 0}}},
        {"users": {"ann": {"requests_per_day": True}}},
        {"users": {"ann": {"requests_per_day": 1.5}}},
        {"users": {"a" * 100_001: {"requests_per_day": 1}}},
    ],
)
def test_invalid_settings(value: Any) -> None:
    with pytest.raises(InvalidParameterValue):
        stored_settings.put(SETTING, value)
