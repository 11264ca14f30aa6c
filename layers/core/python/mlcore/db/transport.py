"""Requests in AWS's JSON protocol, DynamoDB's above all, over kept connections, repeated where that
helps; knows no table and no key.

botocore does the same for every service of AWS with four times the processor time of a request.
Credentials, errors and settings stay botocore's (see :mod:`mlcore.db.client`).
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import socket
import ssl
import time
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from mlcore.db import deadline, exchange
from mlcore.db.local_socket import SocketConnection, socket_path
from mlcore.db.signature import Keys, Signer


class Protocol(NamedTuple):
    """How a service is spoken to; ``target`` is what its operations are named behind."""

    target: str
    version: str = "1.0"


DYNAMODB: Final = Protocol("DynamoDB_20120810.")

_REPEATED_CODES: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_SERVER_ERROR: Final = 500

IDLE_SECONDS: Final = 5.0
"""A connection that nobody used for longer is not trusted: while a function is frozen, and behind a
NAT, its other end goes away without a word, and what is sent on it is lost until a timeout."""

LONGEST_BACK_OFF: Final = 0.4
"""Seconds."""

_random: Final = random.SystemRandom()
"""Processes that start from one snapshot must not wait alike."""


def _blob(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not of DynamoDB's JSON")


_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_blob).encode
_decode: Final = json.loads


class Transport:
    """One endpoint. Callable from many threads; each call has a connection of its own.

    Args:
        endpoint: ``https://host``, ``http://host:port`` (both may have a path), or what
            :func:`mlcore.db.local_socket.endpoint` makes of a path.
        keys: gives the credentials of this moment.
        connect_timeout, read_timeout: seconds, of one attempt.
        attempts: of one call, counting the first.
        patience: seconds in which an endpoint that refuses connections is tried again however often
            that was, since a refusal costs next to nothing.
        longest: seconds that one call takes at most; less where :mod:`mlcore.db.deadline` says so.
        connections: at most so many are kept while nobody uses them.
        authorities: file of the certificates that an ``https`` endpoint is trusted by.
        proxy: ``http://host:port`` that connections to an ``https`` endpoint are tunnelled through.
    """

    def __init__(
        self,
        endpoint: str,
        signer: Signer,
        keys: Callable[[], Keys],
        *,
        connect_timeout: float,
        read_timeout: float,
        attempts: int,
        connections: int,
        user_agent: str,
        patience: float = 0.0,
        longest: float = 20.0,
        authorities: str | None = None,
        proxy: str | None = None,
        protocol: Protocol = DYNAMODB,
    ) -> None:
        parts = urlsplit(endpoint)
        self._target = protocol.target
        self._content_type = f"application/x-amz-json-{protocol.version}"
        self.endpoint = endpoint
        self._host, self._port = parts.hostname or "", parts.port
        self._socket_path = socket_path(endpoint)
        self._path = (not self._socket_path and parts.path) or "/"
        self._authority = "localhost" if self._socket_path else parts.netloc.rpartition("@")[2]
        self._tls = (
            ssl.create_default_context(cafile=authorities) if parts.scheme == "https" else None
        )
        through = urlsplit(proxy) if proxy and self._tls else None
        self._proxy = None if through is None else (through.hostname or "", through.port)
        self._signer = signer
        self._keys = keys
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._attempts = attempts
        self._patience = patience
        self._longest = longest
        self._user_agent = user_agent
        self._connections = connections
        self._idle: deque[tuple[http.client.HTTPConnection, float, float]] = deque()
        """Connections, and since when on both clocks; the last is the one that was used last."""

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The answer to an operation such as ``GetItem``, as DynamoDB's JSON.

        Bytes in parameters are sent as Base64; those of an answer stay Base64.

        Raises:
            ClientError: DynamoDB refused; its ``response`` holds what DynamoDB said.
            EndpointConnectionError, ReadTimeoutError, ConnectionClosedError: no answer came.
        """
        body = _encode(parameters).encode()
        started = time.monotonic()
        ends = min(started + self._longest, deadline.current())
        attempt = 0
        while True:
            attempt += 1
            again = attempt < self._attempts
            failure: Exception
            try:
                status, answer = self._exchange(operation, body, ends)
            except EndpointConnectionError as error:
                failure = error
                again = again or time.monotonic() < started + self._patience
            except (ReadTimeoutError, ConnectionClosedError) as error:
                failure = error
            else:
                if status < 300 and answer is not None:
                    return answer
                failure = refused = _refusal(operation, status, answer)
                code = refused.response["Error"]["Code"]
                passes = status >= _SERVER_ERROR or status < 300 or code in _REPEATED_CODES
                again = again and passes
            wait = _random.uniform(0, min(0.05 * 2**attempt, LONGEST_BACK_OFF))
            if not again or time.monotonic() + wait >= ends:
                raise failure
            time.sleep(wait)

    _make_api_call = call
    """What PynamoDB asks of a client."""

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        while self._idle:
            try:
                connection, _, _ = self._idle.pop()
            except IndexError:  # somebody else took the last one
                return
            connection.close()

    __del__ = close

    def _exchange(
        self, operation: str, body: bytes, ends: float
    ) -> tuple[int, dict[str, Any] | None]:
        """Status and content of one answer; None for a body that is not what was sent."""
        headers = {
            "Host": self._authority,
            "Content-Type": self._content_type,
            "X-Amz-Target": self._target + operation,
        }
        self._signer.sign(self._keys(), headers, body, time.time(), self._path)
        headers["User-Agent"] = self._user_agent
        connection = self._kept()
        if connection is not None:
            try:
                return self._answer(connection, headers, body, ends)
            except (ConnectionClosedError, EndpointConnectionError):
                pass  # The other end had closed it while nobody used it.
        return self._answer(self._connected(self._left(ends)), headers, body, ends)

    def _kept(self) -> http.client.HTTPConnection | None:
        """The connection that was used last, if that was just now."""
        try:
            connection, wall, monotonic = self._idle.pop()
        except IndexError:
            return None
        # Each clock misses something: one may stand still while the function is frozen or starts
        # from a snapshot, the other may be set.
        if 0 <= time.time() - wall <= IDLE_SECONDS and time.monotonic() - monotonic <= IDLE_SECONDS:
            return connection
        connection.close()
        self.close()  # the others have been idle for longer
        return None

    def _left(self, ends: float) -> float:
        """Seconds that are left. Raises ReadTimeoutError: none."""
        left = ends - time.monotonic()
        if left <= 0:
            raise ReadTimeoutError(endpoint_url=self.endpoint, error="no time is left")
        return left

    def _connected(self, left: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        timeout = min(self._connect_timeout, left)
        if self._socket_path:
            connection = SocketConnection(self._socket_path, timeout)
        elif self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        else:
            host, port = self._proxy or (self._host, self._port)
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
            if self._proxy:
                connection.set_tunnel(self._host, self._port or http.client.HTTPS_PORT)
        try:
            connection.connect()
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=self.endpoint, error=error) from error
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        headers: dict[str, str],
        body: bytes,
        ends: float,
    ) -> tuple[int, dict[str, Any] | None]:
        try:
            connection.sock.settimeout(min(self._read_timeout, self._left(ends)))
            reply = exchange.post(connection.sock, headers, body, self._path)
        except TimeoutError as error:
            connection.close()
            self.close()  # what swallowed this request has most likely swallowed them all
            raise ReadTimeoutError(endpoint_url=self.endpoint, error=error) from error
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise ConnectionClosedError(endpoint_url=self.endpoint, error=error) from error
        except BaseException:
            connection.close()
            raise
        if reply.will_close or len(self._idle) >= self._connections:
            connection.close()
        else:
            self._idle.append((connection, time.time(), time.monotonic()))
        checksum = reply.headers.get(b"x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(reply.content):
            return reply.status, None
        try:
            answer = _decode(reply.content)
        except ValueError:
            return reply.status, None
        return reply.status, answer if isinstance(answer, dict) else None


def _refusal(operation: str, status: int, answer: dict[str, Any] | None) -> ClientError:
    """The exception that botocore makes of the same answer."""
    said = answer or {}
    code = str(said.get("__type", status)).rpartition("#")[2]
    message = said.get("message") or said.get("Message") or ""
    response: Any = {
        **{name: value for name, value in said.items() if name != "__type"},
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, operation)
