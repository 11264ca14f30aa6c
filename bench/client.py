"""An HTTP client that sends calls over one persistent connection and measures the time of each."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, Self
from urllib.parse import urlsplit


class Client:
    """A client of an MLflow server. ``seconds`` is the duration of the last call.
    A path that begins with a slash is absolute; others are below ``/api/2.0/mlflow/``.
    """

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next call opens it again."""
        self._connection.close()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, json.dumps(body))

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path, None)

    def _call(self, method: str, path: str, data: str | None) -> dict[str, Any]:
        began = time.perf_counter()
        route = path if path.startswith("/") else f"/api/2.0/mlflow/{path}"
        self._connection.request(method, route, data, {"Content-Type": "application/json"})
        reply = self._connection.getresponse()
        text = reply.read()
        self.seconds = time.perf_counter() - began
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status} {text[:500]!r}")
        answer: dict[str, Any] = json.loads(text)
        return answer
