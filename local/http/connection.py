"""Reads the requests of one client's connection and sends the answers, in one thread.

:meth:`Connection.watch`, which another thread calls, closes connections of slow clients, answers in
place of a function that takes too long, and notices when a client closes the connection.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

from local.http.body_budget import BodyBudget, NoRoom
from local.http.client_presence import has_left
from local.http.lambda_event import FileContent, HttpResponse, failure
from local.http.request_parser import MalformedRequest, RequestHead, RequestParser
from local.http.response_head import WITHOUT_BODY, last_answer, response_head
from local.log import report
from mlcore.providers.abandonment import AbandonableCall

KEEP_ALIVE_SECONDS: Final = 75.0
"""How long the server waits for the next request of a connection, until its headers are
complete."""
IDLE_SECONDS: Final = 1.0
"""A connection that has been idle for this time may be closed to make room for another one."""
PROGRESS_SECONDS: Final = 60.0
"""How long a client may take to send or to receive the next part of a body."""
RECEIVED_BYTES: Final = 65_536
RECEIVED_BODY_BYTES: Final = 262_144
SENT_BYTES: Final = 1 << 18
"""The most bytes that are sent in one call, so that the client's progress can be observed."""
_JOINED_BYTES: Final = 65_536
"""A body of up to this size is sent in one call together with its headers."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Disconnected(Exception):
    """Raised to end a connection: its client closed it, was too slow or sent no HTTP, or the answer
    cannot be sent to its end."""


class Connection:
    """One client's connection. :meth:`serve` runs in a thread of its own; other threads may call
    :meth:`end` and :meth:`watch`.

    While a request is served, ``application`` reads ``head``, then the body by :meth:`parts` or
    :meth:`read`, and calls :meth:`send` once.
    """

    def __init__(
        self,
        client_socket: socket.socket,
        client: str,
        host: str,
        application: Callable[[Connection], None],
        budget: BodyBudget,
    ) -> None:
        """Takes a connected socket. ``client`` and ``host`` are the addresses of the client and of
        this server.
        """
        self.client = client
        self.host = host
        self.head: RequestHead
        self._socket = client_socket
        self._application = application
        self._budget = budget
        self._parser = RequestParser()
        self._until = time.monotonic() + KEEP_ALIVE_SECONDS
        """The monotonic time from which :meth:`watch` acts on this connection."""
        self._late: tuple[HttpResponse, str] | None = None
        """The response to send if the function takes too long, and a message for the log; None
        without a timeout."""
        self._late_status = 0
        """The status of the response that :meth:`watch` sent because the function took too long."""
        self.call: AbandonableCall | None = None
        """The call of a model that the current request makes. :meth:`watch` abandons it if the
        client leaves."""
        self._answering = threading.Lock()
        """The lock of the thread that answers the current request. If :meth:`watch` takes it, it
        never releases it."""
        self._waiting = True
        """Whether the connection waits for its next request and has received no byte of it."""
        self._ending = False
        self._body_ended = True
        self._must_continue = False
        self._keep_alive = True
        self._reserved = 0

    # -- in the connection's own thread --

    def serve(self) -> None:
        """Serves the HTTP requests of the client until the connection ends."""
        try:
            while self._receive_head():
                self._application(self)
                if not self._keep_alive:
                    if not self._body_ended:
                        self._linger()
                    break
        except (Disconnected, OSError):
            pass
        except Exception as error:
            report("a connection failed", error)
        finally:
            self._budget.give_back(self._reserved)
            self._parser.close()
            self._close()

    def _receive_head(self) -> bool:
        """Waits for the next request and reads its head into :attr:`head`. Returns False if the
        connection ends instead.
        """
        events = self._parser.events
        if not events:
            self._until = time.monotonic() + KEEP_ALIVE_SECONDS
            self._waiting = True
            if self._ending:
                return False
            while not events:
                data = self._socket.recv(RECEIVED_BYTES)
                if not data:
                    return False
                self._waiting = False
                self._parser.feed(data)
        event = events.popleft()
        if not isinstance(event, RequestHead):
            self._refuse(event.status if isinstance(event, MalformedRequest) else 400)
            return False
        self.head = event
        self._keep_alive = event.keep_alive
        self._body_ended = False
        self._must_continue = event.expects_continue and not events
        self._until = math.inf
        return True

    def parts(self) -> Iterator[bytes]:
        """Yields the unread rest of the request's body in parts. Raises Disconnected if the body
        did not arrive to its end, or is malformed."""
        events = self._parser.events
        while not self._body_ended:
            if not events:
                self._receive_body()
                continue
            event = events.popleft()
            if event is None:
                self._body_ended = True
            elif isinstance(event, bytes):
                yield event
            else:
                self._refuse(event.status if isinstance(event, MalformedRequest) else 400)
                raise Disconnected

    def _receive_body(self) -> None:
        self._until = time.monotonic() + PROGRESS_SECONDS
        data = b""
        with contextlib.suppress(OSError):  # the client reset the connection, or it was closed
            if self._must_continue:
                self._must_continue = False
                self._socket.sendall(_CONTINUE)
            data = self._socket.recv(RECEIVED_BODY_BYTES)
        self._until = math.inf
        if not data:
            self._keep_alive = False
            raise Disconnected
        self._parser.feed(data)

    def read(self, limit: int) -> bytes | None:
        """Returns the request's whole body; None if it has more than ``limit`` bytes. A body that
        is too long is read to its end and dropped, because the client reads the answer only then.

        Raises:
            Disconnected: the body did not arrive to its end, or is malformed.
            NoRoom: the body does not fit the memory limit for all bodies.
        """
        if self._body_ended:
            return b""
        events = self._parser.events
        if len(events) > 1 and events[1] is None:  # it came whole, with the head
            body = events.popleft()
            events.popleft()
            self._body_ended = True
            if isinstance(body, bytes):
                return body if len(body) <= limit else None
        if events and events[0] is None:
            events.popleft()
            self._body_ended = True
            return b""
        content = bytearray()
        for part in self.parts():
            if len(content) + len(part) > limit:
                content.clear()
                self.drain()
                return None
            if not self._budget.take(len(part)):
                content.clear()
                self.drain()
                raise NoRoom
            self._reserved += len(part)
            content += part
        return bytes(content)

    def drain(self) -> None:
        """Reads and drops the rest of the request's body, so that the client reads the answer and
        the connection can be used again."""
        for _ in self.parts():
            pass

    def within(self, seconds: float, late: HttpResponse, message: str) -> None:
        """Sets a timeout for the answer: if the function gives none within ``seconds``,
        :meth:`watch` sends the answer ``late``, logs ``message`` and ends the connection.
        """
        self._late = late, message
        self._until = time.monotonic() + seconds

    def in_time(self) -> None:
        """Cancels the timeout that :meth:`within` has set: the Lambda function has answered."""
        self._until, self._late = math.inf, None

    def send(self, response: HttpResponse) -> int:
        """Sends the response and returns its status. If :meth:`watch` has already sent an answer
        for this request, drops the response and returns the status of that answer. If the client
        has closed the connection, no error is raised. If a header of the response has a line break,
        the client gets an answer 500 instead.
        """
        if not self._answering.acquire(blocking=False):
            self._discard(response)
            self._keep_alive = False
            return self._late_status
        try:
            self._until, self._late = math.inf, None
            self._send(response)
        except (Disconnected, OSError):
            self._keep_alive = False
        finally:
            self._discard(response)
            self.call = None
            self._answering.release()
            if self._reserved:
                self._budget.give_back(self._reserved)
                self._reserved = 0
        return response.status

    def _send(self, response: HttpResponse) -> None:
        if not self._body_ended:
            if self._must_continue:  # the client may send the body, or not
                self._keep_alive = False
            else:
                self.drain()
        if self._ending:
            self._keep_alive = False
        if response.parts is not None and self.head.version == "1.0":
            self._keep_alive = False  # the end of the connection ends the body
        text = response_head(response, self.head, keep_alive=self._keep_alive)
        if text is None:
            report(f"{self.head.method} {self.head.path}: a header of the answer has a line break")
            self._send_all(last_answer(failure(500, "Internal Server Error")))
            raise Disconnected
        body = response.body
        if self.head.method == "HEAD" or response.status in WITHOUT_BODY:
            self._send_all(text)
        elif response.parts is not None:
            self._send_all(text)
            self._send_parts(response.parts, is_chunked=self.head.version == "1.1")
        elif response.file is not None:
            self._send_all(text)
            self._send_file(response.file)
        elif len(body) <= _JOINED_BYTES:
            self._send_all(text + body)
        else:
            self._send_all(text)
            self._send_all(body)

    def _send_all(self, data: bytes) -> None:
        if len(data) <= SENT_BYTES:
            self._until = time.monotonic() + PROGRESS_SECONDS
            self._socket.sendall(data)
        else:
            view = memoryview(data)
            for at in range(0, len(data), SENT_BYTES):
                self._until = time.monotonic() + PROGRESS_SECONDS
                self._socket.sendall(view[at : at + SENT_BYTES])
        self._until = math.inf

    def _send_parts(self, parts: Iterator[bytes], *, is_chunked: bool) -> None:
        try:
            for part in parts:
                if part:
                    self._send_all(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
        except OSError:
            raise
        except Exception as error:
            # The end of the body is missing, so the client notices the failure.
            report(f"{self.head.method} {self.head.path}: a streamed answer failed", error)
            self._keep_alive = False
            return
        if is_chunked:
            self._send_all(b"0\r\n\r\n")

    def _send_file(self, file: FileContent) -> None:
        content, first, size = file
        while size:
            self._until = time.monotonic() + PROGRESS_SECONDS
            sent = self._socket.sendfile(content, first, min(SENT_BYTES, size))
            if not sent:  # the file became shorter
                raise Disconnected
            first += sent
            size -= sent
        self._until = math.inf

    def _discard(self, response: HttpResponse) -> None:
        """Closes the file or the stream of a response, sent or not. Closing a stream ends the
        function call that produces it.
        """
        if response.file is not None:
            response.file.content.close()
        close = getattr(response.parts, "close", None)
        if close:
            with contextlib.suppress(Exception):
                close()

    def _refuse(self, status: int) -> None:
        """Sends an error with this status to a client whose bytes are not a valid request, and ends
        the connection.
        """
        self._keep_alive = False
        with contextlib.suppress(OSError):
            message = HTTPStatus(status).phrase
            self._socket.sendall(last_answer(failure(status, message)))
            self._linger()

    def _linger(self) -> None:
        """Reads and drops what the client is still sending, for a second at most. Closing a socket
        that has unread bytes resets the connection, and the client might lose the answer.
        """
        self._until = time.monotonic() + 1.0
        self._socket.shutdown(socket.SHUT_WR)
        while self._socket.recv(RECEIVED_BODY_BYTES):
            pass

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    # -- called from other threads --

    def watch(self, now: float) -> None:
        """Enforces the timeouts; the server calls it regularly with the current monotonic time.
        Sends an error if the called function exceeded its time; closes the connection then, or if
        the client is too slow or idle for too long. Abandons a call of a model if its client left.
        """
        call = self.call
        if call and has_left(self._socket):
            call.abandon()
        late = self._late  # read before _until: a thread that sends changes it last
        if now < self._until:
            return
        if late is not None:
            if not self._answering.acquire(blocking=False):
                return
            self._until = math.inf
            answer, message = late
            self._late_status = answer.status
            report(message)
            text = last_answer(answer)
            with contextlib.suppress(OSError):
                self._socket.send(text, getattr(socket, "MSG_DONTWAIT", 0))
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def is_idle(self, now: float) -> bool:
        """Returns whether the connection has waited at least :data:`IDLE_SECONDS` for its next
        request and no byte of that request has arrived.
        """
        return self._waiting and self._until - now < KEEP_ALIVE_SECONDS - IDLE_SECONDS

    def idle_until(self) -> float:
        """Returns the monotonic time at which the connection will be closed if it stays idle."""
        return self._until

    def end(self) -> None:
        """Ends the connection after the answer to the request that is being served; if none is,
        after the answer to one that has already arrived. Further requests are not served.
        """
        self._ending = True
        if self._waiting:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RD)

    def abort(self) -> None:
        """Closes the client's connection at once, without an answer to its request."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
