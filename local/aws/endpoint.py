"""An HTTP endpoint that stands in for KMS and SQS, over AWS's JSON protocol.
It dispatches requests to operations by name. It listens on the loopback only, at a path with a
secret that is made at each start.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.log import report

Operation = Callable[[dict[str, Any]], dict[str, Any]]

MAXIMUM_REQUEST_BYTES = 4 * 1024 * 1024


class ServiceError(Exception):
    """Raised if an operation of the local KMS or SQS fails; it holds the AWS error code that the
    client receives."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AwsEndpoint:
    """An HTTP server on a free port of the loopback interface. For each request it calls the
    operation (of KMS or SQS) that the header X-Amz-Target names.
    """

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._path = f"/{secrets.token_urlsafe(24)}"

        class Handler(_Handler):
            """The request handler of this endpoint: ``_Handler`` with this endpoint's
            operations."""

            served = operations
            secret = self._path

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.5,), name="aws-endpoint", daemon=True
        )

    @property
    def url(self) -> str:
        """The endpoint's URL, as the value of ``AWS_ENDPOINT_URL_<SERVICE>``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    def start(self) -> None:
        """Starts the thread that answers HTTP requests in place of AWS's KMS and SQS."""
        self._thread.start()

    def stop(self) -> None:
        """Stops accepting requests and closes the port. A request that is being answered continues
        in its own thread.
        """
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one segment: with two, the second one would wait for the caller's
    # acknowledgement of the first, 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True
    served: Mapping[str, Operation] = {}
    secret = ""

    def do_POST(self) -> None:
        """Runs the operation that the header X-Amz-Target names, and sends its result as JSON. The
        required header keeps web pages out: a browser sends it to another origin only with that
        origin's permission (CORS).
        """
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAXIMUM_REQUEST_BYTES:
            self.close_connection = True
            self._answer(413, {"__type": "RequestEntityTooLarge"})
            return
        body = self.rfile.read(length)
        if not hmac.compare_digest(self.path.rstrip("/").encode(), self.secret.encode()):
            self._answer(403, {"__type": "AccessDeniedException"})
            return
        operation = self.served.get(self.headers.get("X-Amz-Target") or "")
        if operation is None:
            self._answer(400, {"__type": "UnknownOperationException"})
            return
        try:
            self._answer(200, operation(json.loads(body or b"{}")))
        except ServiceError as error:
            self._answer(400, {"__type": error.code, "message": str(error)})
        except Exception as error:
            report(f"{self.headers['X-Amz-Target']} failed", error)
            self._answer(500, {"__type": "InternalFailure", "message": "see the runner's output"})

    def _answer(self, status: int, content: Mapping[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing: functions log their own requests."""
