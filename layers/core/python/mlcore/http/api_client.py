"""A client with which a function calls this deployment's API as the user of a request: with the
user's login, workspace and permissions. For functions that combine what other functions do, and
access no table themselves.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from mlcore import errors
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER
from mlcore.http.request import Request

T = TypeVar("T")

API_URL: Final = "API_URL"
"""Environment: the URL of the deployment's API."""
_FORWARDED_HEADERS: Final = ("authorization", "x-mlflow-workspace", ORIGIN_HEADER)
_TIMEOUT_SECONDS: Final = 15
_PARALLEL_CALLS: Final = 6
_ERRORS_BY_CODE: Final[dict[str, type[errors.MlflowError]]] = {
    error.error_code: error
    for error in (
        errors.ResourceDoesNotExist,
        errors.ResourceAlreadyExists,
        errors.InvalidParameterValue,
        errors.RequestLimitExceeded,
        errors.PermissionDenied,
        errors.TemporarilyUnavailable,
    )
}


class ApiClient:
    """A client of this deployment's API that acts as the caller of a request. Methods raise the
    error with which the API answers; TemporarilyUnavailable if it cannot be reached, or answers
    with an error of another kind. Making a client raises InvalidParameterValue for a request with
    an AWS signature."""

    def __init__(self, request: Request) -> None:
        if request.is_signed() or request.is_signed_by_query:
            raise errors.InvalidParameterValue(
                "This request calls the API in the caller's name, and an AWS signature is valid "
                "for one request only. Log in with another method."
            )
        self.user_name: Final = request.username()
        """The name of the caller; None if nobody logs in."""
        self._address = urlsplit(os.environ[API_URL])
        self._headers = {
            name: value for name, value in request.headers.items() if name in _FORWARDED_HEADERS
        }
        if request.cookies:
            self._headers["cookie"] = "; ".join(request.cookies)
        self._thread = threading.local()

    def close(self) -> None:
        """Closes the current thread's connection to the API."""
        connection: http.client.HTTPConnection | None = getattr(self._thread, "connection", None)
        if connection is not None:
            connection.close()

    def get(self, path: str, **fields: Any) -> dict[str, Any]:
        """Sends a GET request and returns the JSON answer. Raises the error with which the API
        answers."""
        return self._ask("GET", f"{path}?{urlencode(fields, doseq=True)}")

    def find(self, path: str, **fields: Any) -> dict[str, Any] | None:
        """Sends a GET request like :meth:`get`; returns None if the server answers that the
        resource does not exist."""
        try:
            return self.get(path, **fields)
        except errors.ResourceDoesNotExist:
            return None

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._ask("POST", path, fields)

    def create(self, path: str, **fields: Any) -> dict[str, Any] | None:
        """Sends a POST request like :meth:`post`; returns None if the server answers that the
        resource already exists."""
        try:
            return self.post(path, **fields)
        except errors.ResourceAlreadyExists:
            return None

    def remove(self, method: str, path: str, **fields: Any) -> None:
        """Sends a request that deletes an entity of this deployment, or prepares its deletion. A
        missing entity is not an error."""
        try:
            self._ask(method, path, fields or None)
        except errors.ResourceDoesNotExist:
            return

    def export(self, experiment_id: str, spans: Sequence[Any]) -> None:
        """Sends spans in OpenTelemetry's protocol (OTLP) to the API, for an experiment."""
        body = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
        self._ask("POST", "/v1/traces", body, {"x-mlflow-experiment-id": experiment_id})

    def run_in_parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        with ThreadPoolExecutor(_PARALLEL_CALLS) as pool:
            return list(pool.map(lambda call: call(), calls))

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        api_path = path if path.startswith("/v1/") else f"/api{path}"
        content_sent = None if body is None else json.dumps(body)
        all_headers = {**self._headers, "content-type": "application/json", **(headers or {})}
        url = self._address.path.rstrip("/") + quote(api_path, safe="/?&=%:@+,")
        connection = self._connection()
        try:
            connection.request(method, url, body=content_sent, headers=all_headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise errors.TemporarilyUnavailable(
                "The API could not be reached to answer the request. Try again."
            ) from error
        content = _parse(data)
        if response.status < 300:
            return content
        raise _error(
            response.status, content.get("error_code", ""), str(content.get("message", ""))
        )

    def _connection(self) -> http.client.HTTPConnection:
        """Returns the connection of the current thread."""
        connection: http.client.HTTPConnection | None = getattr(self._thread, "connection", None)
        if connection is None:
            kind = (
                http.client.HTTPSConnection
                if self._address.scheme == "https"
                else http.client.HTTPConnection
            )
            connection = kind(
                self._address.hostname or "", self._address.port, timeout=_TIMEOUT_SECONDS
            )
            self._thread.connection = connection
        return connection


def _parse(data: bytes) -> dict[str, Any]:
    """Returns the JSON object in a response; for any other content, an object with the content's
    text as ``message``."""
    try:
        content = json.loads(data or b"{}")
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {"message": data.decode("utf-8", "replace")}


def _error(status: int, code: str, message: str) -> errors.MlflowError:
    if status in (401, 403):
        return errors.PermissionDenied(message or "Permission denied")
    return _ERRORS_BY_CODE.get(code, errors.TemporarilyUnavailable)(
        message or f"The API answered {status} to a part of the request. Try again."
    )
