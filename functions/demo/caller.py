"""Calls this deployment's API as whoever asks for the demo: their login, their workspace, their
rights; knows no table."""

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
from mlcore.http import Request

T = TypeVar("T")

API_URL: Final = "API_URL"
"""Environment: where the deployment's API answers."""
_PASSED_ON: Final = ("authorization", "cookie", "x-mlflow-workspace")
_SECONDS: Final = 15
_SIDE_BY_SIDE: Final = 6
_KNOWN: Final[dict[str, type[errors.MlflowError]]] = {
    one.error_code: one
    for one in (
        errors.ResourceDoesNotExist,
        errors.ResourceAlreadyExists,
        errors.InvalidParameterValue,
        errors.RequestLimitExceeded,
        errors.PermissionDenied,
        errors.TemporarilyUnavailable,
    )
}


class Caller:
    """Whoever asked for the demo."""

    def __init__(self, request: Request) -> None:
        if request.is_signed() or request.is_signed_by_query:
            raise errors.InvalidParameterValue(
                "The demo is made in the name of its caller, and a signature for AWS counts for one"
                " request alone. Use a deployment with logins, or none, to try it."
            )
        self._address = urlsplit(os.environ[API_URL])
        self._headers = {
            name: value for name, value in request.headers.items() if name in _PASSED_ON
        }
        self._thread = threading.local()

    def get(self, path: str, **fields: Any) -> dict[str, Any]:
        """Raises what the API says, as the error that it is."""
        return self._ask("GET", f"{path}?{urlencode(fields, doseq=True)}")

    def find(self, path: str, **fields: Any) -> dict[str, Any] | None:
        """As :meth:`get`; None for what there is not."""
        try:
            return self.get(path, **fields)
        except errors.ResourceDoesNotExist:
            return None

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._ask("POST", path, fields)

    def make(self, path: str, **fields: Any) -> dict[str, Any] | None:
        """As :meth:`post`; None where it is there already."""
        try:
            return self.post(path, **fields)
        except errors.ResourceAlreadyExists:
            return None

    def remove(self, method: str, path: str, **fields: Any) -> None:
        """Also what is gone already."""
        try:
            self._ask(method, path, fields or None)
        except errors.ResourceDoesNotExist:
            return

    def export(self, experiment_id: str, spans: Sequence[Any]) -> None:
        """Spans by OpenTelemetry's protocol."""
        body = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
        self._ask("POST", "/v1/traces", body, {"x-mlflow-experiment-id": experiment_id})

    def side_by_side(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            return list(pool.map(lambda call: call(), calls))

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        place = path if path.startswith("/v1/") else f"/api{path}"
        sent = None if body is None else json.dumps(body)
        more = {**self._headers, "content-type": "application/json", **(headers or {})}
        url = self._address.path.rstrip("/") + quote(place, safe="/?&=%:@+,")
        connection = self._connection()
        try:
            connection.request(method, url, body=sent, headers=more)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise errors.TemporarilyUnavailable(
                "The API could not be reached to make the demo. Try again."
            ) from error
        told = _read(data)
        if response.status < 300:
            return told
        raise _error(response.status, told.get("error_code", ""), str(told.get("message", "")))

    def _connection(self) -> http.client.HTTPConnection:
        """One for each thread."""
        made: http.client.HTTPConnection | None = getattr(self._thread, "connection", None)
        if made is None:
            kind = (
                http.client.HTTPSConnection
                if self._address.scheme == "https"
                else http.client.HTTPConnection
            )
            made = kind(self._address.hostname or "", self._address.port, timeout=_SECONDS)
            self._thread.connection = made
        return made


def _read(data: bytes) -> dict[str, Any]:
    """What is no object of JSON comes as its message."""
    try:
        told = json.loads(data or b"{}")
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"message": data.decode("utf-8", "replace")}


def _error(status: int, code: str, message: str) -> errors.MlflowError:
    if status in (401, 403):
        return errors.PermissionDenied(message or "Permission denied")
    return _KNOWN.get(code, errors.TemporarilyUnavailable)(
        message or f"The API answered {status} while the demo was made. Try again."
    )
