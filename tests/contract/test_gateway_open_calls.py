"""Limits of calls at the same time: exactly as many pass as the setting says, a call that ends
makes room for another one, and a process that dies keeps its place only until its lease ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gateway_calls.app
from mlcore.db import capacity, keys
from mlcore.db.table import table
from mlcore.entities.gateway_limits import CallLimits
from mlcore.errors import GatewayCallFailed, InvalidParameterValue, TemporarilyUnavailable
from mlcore.gateway import rate_limits
from mlcore.limits.gateway_limits import MAX_CONCURRENT_CALLS
from mlcore.repos.gateway import open_calls
from mlcore.repos.settings import stored_settings
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, guard, judge, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Asked, Provider, Told, openai, serving

PATH = "mlflow/v1/chat/completions"
CHAT: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
SETTING = "gateway_limits"
NOW = 1_800_000_000


@pytest.fixture(autouse=True)
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as double:
        yield double
    stored_settings.delete(SETTING)


def limit(calls: int, scope: str = "endpoints", name: str = "chat") -> None:
    stored_settings.put(SETTING, {scope: {name: {"concurrent_calls": calls}}})


def make_endpoint(provider: Provider) -> str:
    return endpoint("chat", [model("m", "openai", provider.url, model_name="gpt-4o")])


def open_stream() -> Any:
    """A stream whose first part has come; closing it is what a client does that leaves."""
    event = {
        "rawPath": f"/gateway/{PATH}",
        "headers": {},
        "requestContext": {"http": {"method": "POST"}},
        "body": json.dumps({**CHAT, "stream": True}),
    }
    answer = gateway_calls.app.handler(event, SimpleNamespace(streams=True))
    assert answer["statusCode"] == 200
    next(answer["body"])
    return answer["body"]


def test_calls_that_overlap(provider: Provider) -> None:
    make_endpoint(provider)
    limit(2)
    entered, release = threading.Semaphore(0), threading.Event()

    def wait(request: Asked) -> Told:
        entered.release()
        assert release.wait(30)
        return openai(request)

    provider.answer = wait
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(post, PATH, CHAT) for _ in range(2)]
        assert all(entered.acquire(timeout=30) for _ in range(2))
        refused = called(gateway_calls.app.handler, "POST", f"/gateway/{PATH}", CHAT)
        assert refused.status == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.body["detail"] == (
            "Rate limit reached: 2 calls at the same time for this endpoint. Try again "
            "when one of them has ended."
        )
        release.set()
        assert [future.result()[0] for future in waiting] == [200, 200]
    assert len(provider.asked) == 2, "a refused call asks no provider"
    assert [post(PATH, CHAT)[0] for _ in range(3)] == [200] * 3


def test_a_stream_that_its_client_leaves(provider: Provider) -> None:
    make_endpoint(provider)
    limit(1)
    body = open_stream()
    assert post(PATH, CHAT)[0] == 429
    status, kind, _ = post(PATH, {**CHAT, "stream": True})
    assert (status, kind) == (429, "application/json"), "a status, not an event"
    body.close()
    assert post(PATH, CHAT)[0] == 200


@pytest.mark.parametrize("body", [{**CHAT, "messages": 1}, {**CHAT, "temperature": "hot"}, {}])
def test_requests_that_are_not_valid_keep_no_place(provider: Provider, body: Any) -> None:
    make_endpoint(provider)
    limit(1)
    assert post(PATH, {"model": "chat", **body})[0] in (400, 422)
    assert post(PATH, CHAT)[0] == 200


def test_a_provider_that_fails_keeps_no_place(provider: Provider) -> None:
    make_endpoint(provider)
    limit(1)
    provider.answer = lambda request: Told(500, {"error": "broken"})
    assert [post(PATH, CHAT)[0] for _ in range(2)] == [500, 500]


def test_the_calls_of_guardrails_are_part_of_their_call(provider: Provider) -> None:
    """A judge on the same endpoint would otherwise refuse every call of a limit of one."""
    endpoint_id = make_endpoint(provider)
    guard(endpoint_id, judge("polite", "Is {{ inputs }} polite?", "chat"), "BEFORE")
    limit(1)

    def answer(request: Asked) -> Told:
        response = openai(request)
        if request.body.get("response_format"):
            text = '{"result": "yes", "rationale": "it is"}'
            response.body["choices"][0]["message"]["content"] = text
        return response

    provider.answer = answer
    assert post(PATH, CHAT)[0] == 200
    assert len(provider.asked) == 2


def test_a_wider_limit_frees_the_places_of_narrower_ones(store: Store) -> None:
    def limited(target: str, calls: int) -> rate_limits.Limited:
        limits = CallLimits(concurrent_calls=calls)
        return rate_limits.Limited(target, "users", limits)

    narrow, wide = limited("user:ann", 2), limited("workspace:w", 1)
    with (
        rate_limits.open_call([wide], rate_limits.Admission()),
        pytest.raises(GatewayCallFailed),
        rate_limits.open_call([narrow, wide], rate_limits.Admission()),
    ):
        raise AssertionError("a wider limit refuses")
    item = table.get(keys.gateway_open_calls("user:ann"))
    assert item is not None
    assert "calls" not in item


def test_a_refused_call_counts_to_no_limit_of_requests(
    store: Store, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither if as many calls are open as may be, nor if the table fails."""
    make_endpoint(provider)
    limits = {"concurrent_calls": 1, "requests_per_day": 3, "tokens_per_day": 1000}
    stored_settings.put(SETTING, {"endpoints": {"chat": limits}})
    body = open_stream()
    assert [post(PATH, CHAT)[0] for _ in range(5)] == [429] * 5
    body.close()
    begin = open_calls.begin

    def fail(*_: Any) -> None:
        raise TemporarilyUnavailable("no table")

    monkeypatch.setattr(open_calls, "begin", fail)
    assert [post(PATH, CHAT)[0] for _ in range(5)] == [503] * 5
    monkeypatch.setattr(open_calls, "begin", begin)
    assert [post(PATH, CHAT)[0] for _ in range(3)] == [200, 200, 429]


def test_a_place_whose_answer_is_lost_is_freed(
    store: Store, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_endpoint(provider)
    limit(1)
    begin = open_calls.begin

    def lose(*arguments: Any) -> None:
        begin(*arguments)
        raise TemporarilyUnavailable("the answer is lost")

    monkeypatch.setattr(open_calls, "begin", lose)
    assert post(PATH, CHAT)[0] == 503
    monkeypatch.setattr(open_calls, "begin", begin)
    assert post(PATH, CHAT)[0] == 200


def test_at_the_same_time_exactly_as_many_pass(store: Store) -> None:
    def begin(_: int) -> bool:
        try:
            open_calls.begin("user:crowd", open_calls.new_call(NOW + 60), 20, NOW)
        except open_calls.OpenCallsReached:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(begin, range(80))) == 20


def test_leases_end(store: Store) -> None:
    dead = [open_calls.new_call(NOW + second) for second in (10, 20)]
    for call in dead:
        open_calls.begin("user:ann", call, 2, NOW)
    with pytest.raises(open_calls.OpenCallsReached):
        open_calls.begin("user:ann", open_calls.new_call(NOW + 70), 2, NOW + 9)
    open_calls.begin("user:ann", open_calls.new_call(NOW + 71), 2, NOW + 11)
    with pytest.raises(open_calls.OpenCallsReached):
        open_calls.begin("user:ann", open_calls.new_call(NOW + 72), 2, NOW + 11)
    open_calls.end("user:ann", dead[0])  # it was removed already


def test_writes_that_are_repeated(store: Store) -> None:
    call = open_calls.new_call(NOW + 60)
    for _ in range(2):
        open_calls.begin("user:ann", call, 1, NOW)
    for _ in range(2):
        open_calls.end("user:ann", call)
    open_calls.end("user:nobody", call)
    assert table.get(keys.gateway_open_calls("user:nobody")) is None
    open_calls.begin("user:ann", open_calls.new_call(NOW + 60), 1, NOW)


def test_a_place_that_cannot_be_freed_fails_no_call(
    store: Store, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    def fail(*_: Any) -> None:
        raise TemporarilyUnavailable("no table")

    make_endpoint(provider)
    limit(1)
    monkeypatch.setattr(open_calls, "end", fail)
    assert [post(PATH, CHAT)[0] for _ in range(2)] == [200, 429]


def test_the_cost_of_a_limit(store: Store) -> None:
    """A write to begin and one to end; a unit each while few calls are open."""
    limited = rate_limits.Limited("user:ann", "users", CallLimits(concurrent_calls=3))
    with capacity.measure() as measured, rate_limits.open_call([limited], rate_limits.Admission()):
        pass
    assert (measured.round_trips, measured.write_units) == (2, 2)


@pytest.mark.parametrize("calls", [0, MAX_CONCURRENT_CALLS + 1, "2", True])
def test_invalid_settings(calls: Any) -> None:
    with pytest.raises(InvalidParameterValue):
        limit(calls)
