"""Sends requests in AWS's JSON protocol, mainly to DynamoDB, over pooled connections, with retries.

Replaces botocore's client, which needs four times the CPU time. botocore's credentials, exceptions
and settings are still used (see :mod:`mlcore.db.client`).
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
    ReadTimeoutError,
)

from mlcore.db import deadline, failures, http_exchange
from mlcore.db.failures import NotSent
from mlcore.db.signature import Credentials, Signer


class Protocol(NamedTuple):
    """The JSON protocol of an AWS service; ``target`` is the prefix of operation names in the
    header ``X-Amz-Target``."""

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
"""A connection that was idle for longer is closed. While a function is frozen, or behind a NAT, the
other end may drop it silently, and a request on it would wait for the timeout."""

MAX_BACK_OFF: Final = 0.4
"""Maximum seconds between two attempts of a call."""

_random: Final = random.SystemRandom()
"""Not the default generator: its state is the same in all processes started from one snapshot."""


def _blob(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not of DynamoDB's JSON")


_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_blob).encode
_decode: Final = json.loads


class _Lost:
    """Holds the failure of the last attempt of a call that DynamoDB may have executed although the
    attempt failed."""

    __slots__ = ("failure",)

    def __init__(self) -> None:
        self.failure: Exception | None = None


class Transport:
    """A thread-safe client of one endpoint of DynamoDB, or of an AWS service with JSON requests.

    Args:
        endpoint: ``https://host`` or ``http://host:port``; both may have a path.
        keys: returns the current credentials.
        connect_timeout: seconds to connect.
        read_timeout: seconds to wait for the next bytes of a response.
        attempts: maximum number of attempts of one call, the first included.
        patience: seconds in which a connection that fails is retried, beyond ``attempts`` too.
        longest: maximum seconds of one call; :mod:`mlcore.db.deadline` may shorten it.
        connections: maximum of idle connections in the pool.
        authorities: file with the trusted certificate authorities for ``https``.
        proxy: ``http://host:port`` of a proxy for ``https`` endpoints.
    """

    is_embedded = False

    def __init__(
        self,
        endpoint: str,
        signer: Signer,
        keys: Callable[[], Credentials],
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
        self._path = parts.path or "/"
        self._authority = parts.netloc.rpartition("@")[2]
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
        """(connection, wall clock, monotonic clock) since when it is idle; most recent last."""

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Calls an operation such as ``GetItem`` and returns its response (DynamoDB JSON).

        Bytes in parameters are sent as Base64; those in the response stay Base64.

        Raises:
            ClientError: DynamoDB returned an error; ``response`` holds it.
            NotSent: the call was not executed.
            ReadTimeoutError, ConnectionClosedError: no response; the call may have been executed.
                Also raised if such an attempt was followed by one that was not sent, or was refused
                because of the load.
        """
        body = _encode(parameters).encode()
        started = time.monotonic()
        ends = min(started + self._longest, deadline.current())
        attempt = 0
        lost = _Lost()
        while True:
            attempt += 1
            again = attempt < self._attempts
            passes = True
            failure: Exception
            try:
                status, answer = self._exchange(operation, body, ends, lost)
            except NotSent as error:
                failure = error
                again = again or time.monotonic() < started + self._patience
            except (ReadTimeoutError, ConnectionClosedError) as error:
                failure = lost.failure = error
            else:
                if status < 300 and answer is not None:
                    return answer
                is_lost = lost.failure is not None
                failure = refused = _refusal(operation, status, answer, is_lost=is_lost)
                code = refused.response["Error"]["Code"]
                is_open = status >= _SERVER_ERROR or status < 300
                if is_open:
                    lost.failure = refused
                passes = is_open or code in _REPEATED_CODES
                again = again and passes
            wait = _random.uniform(0, min(0.05 * 2**attempt, MAX_BACK_OFF))
            if not again or time.monotonic() + wait >= ends:
                # A refusal because of the load says nothing about an attempt before it.
                raise (passes and lost.failure) or failure
            time.sleep(wait)

    _make_api_call = call
    """The method that PynamoDB calls."""

    def close(self) -> None:
        """Closes all idle connections."""
        while self._idle:
            try:
                connection, _, _ = self._idle.pop()
            except IndexError:  # another thread took the last one
                return
            connection.close()

    __del__ = close

    def _exchange(
        self, operation: str, body: bytes, ends: float, lost: _Lost
    ) -> tuple[int, dict[str, Any] | None]:
        """Sends one attempt and returns status and content of its response; the content is None if
        it is damaged (checksum, JSON). If the server has closed the idle connection, sends the
        request again over a new one."""
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
            except ConnectionClosedError as error:  # The server had closed the idle connection.
                lost.failure = error
        return self._answer(self._connected(self._left(ends)), headers, body, ends)

    def _kept(self) -> http.client.HTTPConnection | None:
        """Takes the connection that was used last from the pool and returns it; None if there is
        none or it was idle for too long."""
        try:
            connection, wall, monotonic = self._idle.pop()
        except IndexError:
            return None
        # Both clocks are needed: the monotonic one may stop while the function is frozen, the wall
        # clock may be set.
        if 0 <= time.time() - wall <= IDLE_SECONDS and time.monotonic() - monotonic <= IDLE_SECONDS:
            return connection
        connection.close()
        self.close()  # the others were idle for even longer
        return None

    def _left(self, ends: float) -> float:
        """Returns the seconds until ``ends`` (on time.monotonic's clock). Raises NotSent if none
        are left."""
        seconds = ends - time.monotonic()
        if seconds <= 0:
            raise NotSent(endpoint_url=self.endpoint, error="no time is left")
        return seconds

    def _connected(self, seconds: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        timeout = min(self._connect_timeout, seconds)
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        else:
            host, port = self._proxy or (self._host, self._port)
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
            if self._proxy:
                connection.set_tunnel(self._host, self._port or http.client.HTTPS_PORT)
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(endpoint_url=self.endpoint, error=error) from error
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
            reply = http_exchange.post(connection.sock, headers, body, self._path)
        except TimeoutError as error:
            connection.close()
            self.close()  # the other idle connections are probably dead, too
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


def _refusal(
    operation: str, status: int, answer: dict[str, Any] | None, *, is_lost: bool
) -> ClientError:
    """Returns the exception that botocore would raise for this response.

    Args:
        is_lost: whether an earlier attempt of the call may have been executed.
    """
    error = answer or {}
    # A 5xx without a code comes from a proxy or load balancer. A damaged answer may have been that
    # of a success.
    unnamed = str(status) if 300 <= status < _SERVER_ERROR else "InternalServerError"
    code = str(error.get("__type", unnamed)).rpartition("#")[2]
    message = error.get("message") or error.get("Message") or ""
    response: Any = {
        **{name: value for name, value in error.items() if name != "__type"},
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, failures.IS_LOST: is_lost},
    }
    return ClientError(response, operation)
