"""A caller who leaves ends the provider's work, and pays for what was sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.errors import CallerLeft, ServerStops
from mlcore.gateway import guarded_calls
from mlcore.providers import abandonment, transport
from mlcore.providers.abandonment import AbandonableCall
from mlcore.providers.proxied import ProxiedRequest
from mlcore.repos.gateway import configuration
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.providers import openai, serving
from tests.doubles.silent_provider import FIRST_PART, PATIENCE, SilentProvider, silent

Json = dict[str, Any]

CHAT: Json = {"messages": [{"role": "user", "content": "hello" * 20}]}


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))
    yield
    abandonment.end()


def leave_when(call: AbandonableCall, provider: SilentProvider) -> threading.Thread:
    """A thread that abandons the call once the provider was asked."""

    def leave() -> None:
        provider.is_asked.wait(PATIENCE)
        time.sleep(0.05)  # so that the call waits for what comes next
        call.abandon()

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    return thread


def ask() -> Json:
    return guarded_calls.complete_chat("default", "chat", CHAT)


def test_a_whole_call_ends(store: Store) -> None:
    """No other model is asked, and the trace has the tokens of the request."""
    with silent() as provider, serving(openai) as other:
        models = [model("a", "openai", provider.url), model("b", "openai", other.url)]
        made = endpoint("chat", models[:1], models[1:], usage_tracking=True)
        thread = leave_when(abandonment.begin(), provider)
        began = time.monotonic()
        with pytest.raises(CallerLeft):
            ask()
        assert time.monotonic() - began < PATIENCE / 2
        assert provider.is_left.wait(PATIENCE)
        assert not other.asked
    thread.join()
    experiment = configuration.read("default").endpoints[made].experiment_id
    (info,) = infos(str(experiment))
    assert info["state"] == "ERROR"
    assert json.loads(info["trace_metadata"]["mlflow.trace.tokenUsage"])["input_tokens"] > 100 // 4


@pytest.mark.parametrize("path", ["mlflow/v1/chat/completions", "openai/v1/chat/completions"])
def test_a_silent_stream_ends(store: Store, path: str) -> None:
    with silent(FIRST_PART) as provider:
        endpoint("chat", [model("a", "openai", provider.url)])
        thread = leave_when(abandonment.begin(), provider)
        status, _, text = post(path, {"model": "chat", **CHAT, "stream": True})
        assert (status, "The caller closed the connection" in text) == (200, True)
        assert provider.is_left.wait(PATIENCE)
    thread.join()


def test_nothing_is_sent_for_a_caller_who_has_left(store: Store) -> None:
    with serving(openai) as provider:
        endpoint("chat", [model("a", "openai", provider.url)])
        abandonment.begin().abandon()
        with pytest.raises(CallerLeft):
            ask()
        assert not provider.asked


def test_a_call_that_has_ended_ends_no_other(store: Store) -> None:
    """Its connection is kept, and another call uses it when the caller of the first one leaves."""
    first = abandonment.begin()
    released = threading.Event()

    def wait(request: Any) -> Any:
        if len(provider.asked) == 2:
            first.abandon()
            released.wait(0.2)
        return openai(request)

    with serving(wait) as provider:
        endpoint("chat", [model("a", "openai", provider.url)])
        assert ask()["choices"]
        abandonment.begin()
        assert ask()["choices"]
        abandonment.end()
        assert ask()["choices"]
        assert len(provider.asked) == 3


def test_another_thread_is_not_concerned(store: Store) -> None:
    answers: list[Json] = []
    with serving(openai) as provider:
        endpoint("chat", [model("a", "openai", provider.url)])
        abandonment.begin().abandon()
        thread = threading.Thread(target=lambda: answers.append(ask()))
        thread.start()
        thread.join()
    assert answers


@pytest.mark.parametrize(
    ("head", "body", "is_complete"),
    [
        (b"content-length: 2", b"{}", True),
        (b"transfer-encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n", True),
        (b"content-length: 3", b"{}", False),
        (b"transfer-encoding: chunked", b"2\r\n{}\r\n", False),
        (b"connection: close", b"{}", False),
    ],
)
def test_a_server_that_stops_keeps_a_complete_answer(
    head: bytes, body: bytes, is_complete: bool
) -> None:
    """The call is stopped after the last byte has arrived and before the next read."""
    call = abandonment.begin()
    waited: list[bool] = []
    with silent(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (head, body)) as provider:
        sent = transport.exchange(provider.url, {}, ProxiedRequest(""), configured=True)

        def read() -> list[bytes]:
            with sent as response:
                parts = transport.read_chunks(response)
                first = next(parts)
                waited.append(call.is_waiting)
                call.stop()
                answer = [first, *parts]
                waited.append(call.is_waiting)
                return answer

        if is_complete:
            assert read() == [b"{}"]
            assert waited == [True, False]
        else:
            with pytest.raises(ServerStops):
                read()
    assert not call.is_waiting
