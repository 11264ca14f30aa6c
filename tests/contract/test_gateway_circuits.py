"""Models whose provider cannot work are left alone for a while, and no caller decides that for
others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judge_runner import app as judge_runner
from mlcore.errors import CallerLeft, FailureTraits, GatewayCallFailed, InvalidParameterValue
from mlcore.gateway import circuit_breakers, guarded_calls, retries
from mlcore.gateway.circuit_breakers import FAILURES, CircuitBreakers
from mlcore.repos.evaluation import jobs
from mlcore.repos.gateway import configuration
from tests.contract.busy_providers import (
    CHAT,
    Clock,
    ask,
    asking,
    busy,
    in_turn,
    noted_pauses,
    own_circuits,
    refused,
)
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, configure, endpoint, guard, judge, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, openai, saying, serving

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


@pytest.fixture(autouse=True)
def circuits(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return own_circuits(monkeypatch)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return noted_pauses(monkeypatch)


def open_circuit(provider: Provider) -> None:
    while len(provider.asked) < FAILURES:
        refused()


@pytest.mark.parametrize("status", [429, 503, 529])
def test_an_open_circuit_spares_the_provider(store: Store, circuits: Clock, status: int) -> None:
    with asking(busy(status)) as provider:
        open_circuit(provider)
        failure = refused()
        assert len(provider.asked) == FAILURES
        assert failure.status == (429 if status == 429 else 503)
        assert failure.retry_after == "5"
        assert "overloaded" not in failure.message  # that belongs to another call
        circuits.now += circuit_breakers.OPEN_SECONDS
        provider.answer = openai
        ask()
        provider.answer = busy(status)
        refused()  # the circuit is closed: several failures are needed again
        assert len(provider.asked) == FAILURES + 4


def test_one_call_probes(store: Store, circuits: Clock) -> None:
    with asking(busy(503)) as provider:
        open_circuit(provider)
        circuits.now += circuit_breakers.OPEN_SECONDS
        for _ in range(3):
            refused()
        assert len(provider.asked) == FAILURES + 1


def test_an_open_circuit_leads_to_the_fallback_at_once(store: Store, pauses: list[float]) -> None:
    with serving(openai) as other, asking(busy(503), other) as provider:
        for _ in range(5):
            ask()
        assert (len(provider.asked), len(other.asked)) == (FAILURES, 5)


def test_a_provider_says_how_long_it_cannot_work(store: Store, circuits: Clock) -> None:
    with asking(busy(429, **{"Retry-After": "12"})) as provider:
        open_circuit(provider)
        assert refused().retry_after == "12"
        provider.answer = busy(429, **{"Retry-After": "99999"})
        circuits.now += 12
        refused()
        assert refused().retry_after == "30"


@pytest.mark.parametrize("status", [400, 401, 500, 504])
def test_no_request_can_open_a_circuit(store: Store, status: int) -> None:
    """Otherwise somebody could end the calls of all others with requests that fail."""
    with asking(busy(status)) as provider:
        for _ in range(FAILURES + 1):
            assert refused().status == status
        provider.answer = openai
        ask()


def test_a_request_that_is_refused_closes_the_circuit(store: Store) -> None:
    with asking(in_turn(*(busy(503),) * (FAILURES - 1), busy(400), busy(503))) as provider:
        while len(provider.asked) < 2 * FAILURES - 1:
            assert refused().status in (400, 503)


def test_another_model_and_a_changed_one_are_called(store: Store) -> None:
    with asking(busy(503)) as provider, serving(openai) as other:
        endpoint("other", [model("other", "openai", other.url)])
        open_circuit(provider)
        guarded_calls.complete_chat("default", "other", CHAT)
        (definition,) = [
            known
            for known in configuration.read("default").model_definitions.values()
            if known.name == "m0"
        ]
        configure(
            "model-definitions/update",
            {"model_definition_id": definition.model_definition_id, "model_name": "m-new"},
        )
        provider.answer = openai
        assert ask()["model"] == "m-new"


def test_the_kept_circuits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breakers, "MAX_CIRCUITS", 3)
    breakers = CircuitBreakers()
    failure = GatewayCallFailed(503, "busy", traits=FailureTraits(is_unavailable=True))
    for number in range(10):
        for _ in range(FAILURES):
            breakers.add_failure(number, failure)
    refusing = 0
    for number in range(10):
        try:
            breakers.check(number)
        except GatewayCallFailed:
            refusing += 1
    assert refusing == 3


CLAUDE = {"user_agent": "claude-cli/2.1", "authorization": "Bearer own", "x_api_key": "own"}
"""Headers of a program that brings its user's own subscription, and of this server's login."""


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_caller_s_own_credentials_neither_open_a_circuit_nor_close_it(
    store: Store, is_streamed: bool
) -> None:
    def ask_as_claude(**headers: str) -> int:
        body = {"model": "chat", **CHAT, "stream": is_streamed}
        answered = len(provider.asked)
        post("openai/v1/chat/completions", body, **headers)
        return len(provider.asked) - answered

    with asking(busy(429)) as provider:
        assert [ask_as_claude(**CLAUDE) for _ in range(4)] == [3] * 4
        assert provider.asked[-1].headers["x-api-key"] == "own"
        provider.asked.clear()
        open_circuit(provider)
        assert ask_as_claude(**CLAUDE) == 3, "it is not refused"
        provider.answer = busy(400)
        assert ask_as_claude(**CLAUDE) == 1
        assert ask_as_claude() == 0, "the circuit is still open for others"
        assert ask_as_claude(**CLAUDE | {"user_agent": "curl/8"}) == 0


def test_a_proxied_request_neither_opens_a_circuit_nor_closes_it(store: Store) -> None:
    def proxy() -> int:
        return post("proxy/chat/v1/any", {"model": "none"})[0]

    with asking(busy(429)) as provider:
        assert {proxy() for _ in range(2 * FAILURES)} == {429}
        assert len(provider.asked) == 2 * FAILURES
        provider.asked.clear()
        open_circuit(provider)
        provider.answer = busy(404)
        assert proxy() == 404
        assert refused().retry_after == "5"


def test_calls_of_the_server_itself_use_no_circuit(store: Store) -> None:
    """Otherwise the judges that are busy at the same time would fail all further ones of a job."""
    with asking(busy(429)) as provider:
        for number in range(1, FAILURES + 1):
            with pytest.raises(GatewayCallFailed, match="overloaded"):
                guarded_calls.complete_chat("default", "chat", CHAT, judges=True)
            assert len(provider.asked) == 3 * number
        provider.asked.clear()
        open_circuit(provider)
        provider.answer = openai
        guarded_calls.complete_chat("default", "chat", CHAT, judges=True)
        assert refused().retry_after == "5"


def test_the_judge_of_a_guardrail_uses_no_circuit(store: Store) -> None:
    with serving(busy(429)) as judging, serving(openai) as provider:
        endpoint("guards", [model("judging", "openai", judging.url)])
        guarded = endpoint("chat", [model("m", "openai", provider.url)])
        guard(guarded, judge("fine", "Is {{ inputs }} fine?", "guards"), "BEFORE")
        for _ in range(FAILURES):
            refused()
        assert len(judging.asked) == 3 * FAILURES
        judging.answer = saying('{"result": "yes", "rationale": "It is so."}')
        ask()


@pytest.mark.parametrize(
    ("job_name", "requests"),
    [
        ("invoke_scorer", 3),
        ("run_online_trace_scorer", 3),
        ("optimize_prompts", 1),
        ("invoke_issue_detection", 1),
    ],
)
def test_a_job_s_calls_are_repeated_by_the_gateway_or_by_its_journal(
    store: Store, job_name: str, requests: int
) -> None:
    job = jobs.new("default", job_name, {}, 1)
    complete = judge_runner._completion(job)
    with asking(busy(503)) as provider:
        with pytest.raises(GatewayCallFailed):
            complete("default", "chat", CHAT, None)
        assert len(provider.asked) == requests


def test_the_caller_s_own_error_is_raised_when_its_call_opens_the_circuit(
    store: Store, pauses: list[float]
) -> None:
    with asking(busy(503)) as provider:
        assert "overloaded" in refused().message
        assert pauses == [0.5, 1.0]
        assert "overloaded" in refused().message
        assert len(provider.asked) == FAILURES
        assert pauses == [0.5, 1.0, 0.5], "nothing is waited for once the circuit is open"


def test_the_caller_s_own_error_is_raised_when_others_open_the_circuit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_by_others = CircuitBreakers()
    failure = GatewayCallFailed(503, "of others", traits=FailureTraits(is_unavailable=True))

    def others_fail(_seconds: float) -> None:
        (model,) = opened_by_others._failing
        for _ in range(FAILURES):
            opened_by_others.add_failure(model, failure)

    monkeypatch.setattr(retries, "CIRCUITS", opened_by_others)
    monkeypatch.setattr(retries, "abandonment", SimpleNamespace(pause=others_fail))
    with asking(busy(429)) as provider:
        failed = refused()
        assert (failed.status, len(provider.asked)) == (429, 1)
        assert "overloaded" in failed.message


UNTELLING = (
    GatewayCallFailed(422, "not permitted"),
    InvalidParameterValue("no api_base"),
    GatewayCallFailed(500, "failed", traits=FailureTraits(is_answer=True)),
    GatewayCallFailed(504, "late"),
    GatewayCallFailed(502, "no JSON"),
    CallerLeft(),
    RuntimeError("unexpected"),
)
"""Failures that do not say whether the provider can work."""


@pytest.mark.parametrize("error", UNTELLING, ids=repr)
def test_a_failure_that_says_nothing_about_the_provider_changes_nothing(error: Exception) -> None:
    """It does not close a circuit, does not count, and lets the next call probe."""
    clock = Clock()
    breakers = CircuitBreakers(clock)
    failure = GatewayCallFailed(503, "busy", traits=FailureTraits(is_unavailable=True))
    for _ in range(FAILURES - 1):
        assert not breakers.add_failure("m", failure)
    assert not breakers.add_failure("m", error)
    assert not breakers.check("m")
    assert breakers.add_failure("m", failure), "the failures before still count"
    clock.now += circuit_breakers.OPEN_SECONDS
    assert breakers.check("m")
    breakers.add_failure("m", error, is_probe=False)
    with pytest.raises(GatewayCallFailed):
        breakers.check("m")  # the call that failed had begun earlier, and another one probes
    breakers.add_failure("m", error, is_probe=True)
    assert breakers.check("m"), "the next call probes"
    breakers.add_failure("m", failure, is_probe=True)
    with pytest.raises(GatewayCallFailed):
        breakers.check("m")


@pytest.mark.parametrize("status", [500, 504])
def test_a_probe_that_says_nothing_is_followed_by_another_at_once(
    store: Store, circuits: Clock, status: int
) -> None:
    with asking(busy(503)) as provider:
        open_circuit(provider)
        circuits.now += circuit_breakers.OPEN_SECONDS
        provider.answer = busy(status)
        assert (refused().status, refused().status) == (status, status)
        provider.answer = openai
        ask()


def test_a_request_that_this_server_refuses_does_not_close_the_circuit(
    store: Store, circuits: Clock
) -> None:
    """It is refused after the circuit was asked, before anything was sent."""
    with asking(busy(503)) as provider:
        open_circuit(provider)
        circuits.now += circuit_breakers.OPEN_SECONDS
        body = {"model": "chat", "contents": []}
        assert post("gemini/v1beta/models/chat:generateContent", body)[0] == 400
        provider.answer = openai
        ask()  # probes
        provider.answer = busy(503)
        provider.asked.clear()
        open_circuit(provider)
        circuits.now += circuit_breakers.OPEN_SECONDS
        assert post("gemini/v1beta/models/chat:generateContent", body)[0] == 400
        refused()
        assert len(provider.asked) == FAILURES + 1, "the circuit was not closed"
