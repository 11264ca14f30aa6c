"""Issuers that answer with anything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mlcore.oidc import issuer_documents


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The URL of a server that answers one request with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            thread.join()


def response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_an_object_is_returned() -> None:
    with answering(response(b'{"issuer": "i"}')) as url:
        assert issuer_documents.fetch_json(url) == {"issuer": "i"}


@pytest.mark.parametrize("answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n"], ids=repr)
def test_an_answer_that_is_none_is_an_os_error(answer: bytes) -> None:
    with answering(answer) as url, pytest.raises(OSError, match=r"."):
        issuer_documents.fetch_json(url)


@pytest.mark.parametrize("body", [b"[" * 200_000, b"[]", b"{", b"{}" + b" " * 262_144], ids=len)
def test_a_body_that_is_no_object_is_a_value_error(body: bytes) -> None:
    with answering(response(body)) as url, pytest.raises(ValueError, match=r"."):
        issuer_documents.fetch_json(url)
