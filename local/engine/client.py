"""botocore clients over a socket in the file system, which botocore itself does not know."""

from __future__ import annotations

import http.client
from collections import deque
from collections.abc import Iterator
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from mlcore.db.local_socket import SocketConnection

URL = "http://localhost"
"""What such a client is told for its endpoint; nothing is sent there."""

_SECONDS = 30.0


class _Content:
    """A body that was read already, as botocore wants it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


class _Session:
    """Sends the prepared requests of one client; callable from many threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: deque[SocketConnection] = deque()

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    __del__ = close

    def send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        """botocore's hook ``before-send``: an answer in place of its own sending."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = SocketConnection(self._path, _SECONDS)
            try:
                connection.connect()
            except OSError as error:
                raise EndpointConnectionError(endpoint_url=self._path, error=error) from error
        headers: dict[str, Any] = dict(request.headers.items())
        body: Any = request.body
        try:
            connection.request(request.method, "/", body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # Those that wait were made to the same engine, which is gone.
            self.close()
            raise ConnectionClosedError(endpoint_url=self._path, error=error) from error
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        received: Any = answer.headers
        return AWSResponse(request.url, answer.status, received, _Content(content))


def through_socket(client: Any, path: str) -> Any:
    """The client, whose requests go to the socket at ``path`` from now on."""
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register(f"before-send.{service}", _Session(path).send)
    return client
