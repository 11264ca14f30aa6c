"""Connections to providers are used again, and never for another address, after an answer that was
not read to its end, or when they were idle for long."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mlcore import process_cache
from mlcore.errors import GatewayCallFailed
from mlcore.providers import kept_connections, transport
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.kept_connections import Destination, KeptConnections
from mlcore.providers.proxied import ProxiedRequest
from mlcore.webhooks import connections
from tests.contract.gateway_world import allow_local

NO_CREDENTIALS = CredentialRedactor(())
ANSWER = b'{"said": 1}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + ANSWER
LAST = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"8\r\ndata: 1\n\r\n8\r\ndata: 2\n\r\n0\r\n\r\n"
)
ENDS_EARLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: 1\n",
    STREAM.replace(b"0\r\n\r\n", b"8\r\ndata: 3\n\r\n"),
)
"""Answers that end before what their headers and chunks announce."""
CLOSES = b""
"""Closes the connection instead of an answer."""


class Provider:
    """Answers each request on each connection by a script, and notes on which one it came."""

    def __init__(self) -> None:
        self.script: list[bytes] = []
        """Answers to the next requests; WHOLE after them."""
        self.connections: list[int] = []
        """For each request the number of its connection."""
        self.closed = threading.Semaphore(0)
        """Counts connections that the caller has closed."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._opened = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._opened += 1
                threading.Thread(
                    target=self._serve, args=(connection, self._opened), daemon=True
                ).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            received = b""
            while part := connection.recv(65536):
                received += part
                if not received.endswith(b"}"):
                    continue
                received = b""
                self.connections.append(number)
                answer = self.script.pop(0) if self.script else WHOLE
                if answer == CLOSES:
                    return
                connection.sendall(answer)
                if b"Connection: close" in answer or answer in ENDS_EARLY:
                    return
        self.closed.release()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    allow_local(monkeypatch)
    transport.CONNECTIONS.close()
    made = Provider()
    yield made
    made.close()
    transport.CONNECTIONS.close()


def ask(provider: Provider) -> object:
    return transport.ask(
        f"{provider.url}/v1", {}, {"ask": {}}, configured=True, redactor=NO_CREDENTIALS
    )


def stream(provider: Provider) -> Iterator[bytes]:
    return transport.lines(
        f"{provider.url}/v1", {}, {"ask": {}}, configured=True, redactor=NO_CREDENTIALS
    )


def test_calls_use_one_connection(provider: Provider) -> None:
    provider.script = [WHOLE, STREAM, WHOLE]
    assert ask(provider) == {"said": 1}
    assert list(stream(provider)) == [b"data: 1\n", b"data: 2\n"]
    assert ask(provider) == {"said": 1}
    assert provider.connections == [1, 1, 1]


def test_calls_at_the_same_time_do_not_share_one(provider: Provider) -> None:
    provider.script = [STREAM, WHOLE]
    first = stream(provider)
    next(first)
    ask(provider)
    assert provider.connections == [1, 2]
    assert list(first) == [b"data: 2\n"]


def test_one_that_the_provider_closes_is_not_used_again(provider: Provider) -> None:
    provider.script = [LAST]
    for _ in range(3):
        assert ask(provider) == {"said": 1}
    assert provider.connections == [1, 2, 2]


def test_a_stream_that_is_left_ends_the_provider_s_work(provider: Provider) -> None:
    provider.script = [STREAM[:-5]]
    left = stream(provider)
    assert next(left) == b"data: 1\n"
    left.close()  # type: ignore[attr-defined]
    assert provider.closed.acquire(timeout=10)
    ask(provider)
    assert provider.connections == [1, 2]


def test_a_kept_one_that_ends_without_an_answer_is_replaced_once(provider: Provider) -> None:
    provider.script = [WHOLE, CLOSES, WHOLE]
    for _ in range(2):
        assert ask(provider) == {"said": 1}
    assert provider.connections == [1, 1, 2]
    provider.script = [CLOSES, CLOSES]
    with pytest.raises(GatewayCallFailed) as failed:
        ask(provider)
    assert failed.value.status == 502
    assert provider.connections == [1, 1, 2, 2, 3]


def test_a_kept_one_that_ends_late_is_told(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider had the request for long enough to work on it."""
    provider.script = [WHOLE, CLOSES]
    ask(provider)
    monkeypatch.setattr(transport, "_CLOSED_SECONDS", 0.0)
    with pytest.raises(GatewayCallFailed) as failed:
        ask(provider)
    assert failed.value.status == 502
    assert provider.connections == [1, 1]


def test_a_new_one_that_ends_without_an_answer_is_told(provider: Provider) -> None:
    """The provider may have done the work, which costs money."""
    provider.script = [CLOSES]
    with pytest.raises(GatewayCallFailed):
        ask(provider)
    assert provider.connections == [1]


def test_one_that_was_idle_for_long_is_closed(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(provider)
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0)
    ask(provider)
    assert provider.closed.acquire(timeout=10)
    assert provider.connections == [1, 2]


def test_a_name_whose_address_is_dead_is_resolved_again_at_once(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of large providers rotate: one dead address must not take all calls for a while.
    An address that answers is kept."""
    process_cache.clear()
    answers = ["127.0.0.2", "127.0.0.1"]
    system_resolver = socket.getaddrinfo

    def resolve(host: str, *args: Any, **named: Any) -> Any:
        if host == "models.example":
            return [(0, 0, 0, "", (answers.pop(0), 0))]
        return system_resolver(host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = provider.url.replace("127.0.0.1", "models.example")
    with pytest.raises(GatewayCallFailed, match="could not be reached"):
        transport.ask(url, {}, {"ask": {}}, configured=True, redactor=NO_CREDENTIALS)
    for _ in range(2):
        answer = transport.ask(url, {}, {"ask": {}}, configured=True, redactor=NO_CREDENTIALS)
        assert answer == {"said": 1}
    assert provider.connections == [1, 1]


def test_one_belongs_to_address_port_and_name() -> None:
    """A name that resolves to another address, or another name at the address, gets its own."""
    kept = KeptConnections()
    here = Destination("https", "192.0.2.1", 443, "api.example")
    pool = connections.pool(*here, connect=1, read=1)
    kept.keep(here, pool)
    for other in (
        here._replace(address="192.0.2.2"),
        here._replace(host="other.example"),
        here._replace(port=444),
        here._replace(scheme="http"),
    ):
        assert kept.take(other) is None
    assert kept.take(here) is pool
    assert kept.take(here) is None
    pool.close()


def test_only_so_many_are_kept(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "MAX_KEPT", 2)
    provider.script = [STREAM] * 4
    streams = [stream(provider) for _ in range(4)]
    for chunks in streams:
        next(chunks)
    for chunks in streams:
        assert list(chunks) == [b"data: 2\n"]
    for _ in range(2):
        assert provider.closed.acquire(timeout=10)
    assert len(transport.CONNECTIONS) == 2


@pytest.mark.parametrize("answer", ENDS_EARLY)
def test_answer_that_ends_early_is_no_whole_answer(provider: Provider, answer: bytes) -> None:
    provider.script = [answer, answer, WHOLE]
    lines = stream(provider)
    assert next(lines) == b"data: 1\n"
    with pytest.raises(GatewayCallFailed) as failed:
        list(lines)
    assert failed.value.status == 502
    with (
        pytest.raises(GatewayCallFailed),
        transport.exchange(
            f"{provider.url}/v1", {}, ProxiedRequest("", body={"ask": {}}), configured=True
        ) as response,
    ):
        transport.raw_answer_of(response, NO_CREDENTIALS)
    assert ask(provider) == {"said": 1}


def test_error_that_ends_early_keeps_its_status(provider: Provider) -> None:
    provider.script = [
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n"
        b'Content-Length: 99\r\nConnection: close\r\n\r\n{"error": {"message": "slow down"}}'
    ]
    with pytest.raises(GatewayCallFailed) as failed:
        ask(provider)
    assert failed.value.status == 429
