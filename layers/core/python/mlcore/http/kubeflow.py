"""The form of the answers of Kubeflow's APIs: JSON, its errors, and what an old version says of its
own end."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import EndpointNotFound, MlflowError
from mlcore.http.compression import fit
from mlcore.http.handler import Manner
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.routes import Route, allowed_methods
from mlcore.http.sent import Sent
from mlcore.kubeflow.body import check_text
from mlcore.kubeflow.errors import bad
from mlcore.kubeflow.errors import body as error_body

JSON: Final = "application/json; charset=UTF-8"

_RETRY_SECONDS: Final = "1"
_SUNSET: Final = "Fri, 31 Dec 2027 23:59:59 GMT"


class Made(NamedTuple):
    """An answer with another status than 200."""

    answer: dict[str, Any]
    status: int = 201


Answer = dict[str, Any] | Made | Response | None
"""None: 204, without a body. A response is sent as it is."""


def arguments(sent: Sent) -> dict[str, str]:
    """The query, without what is empty. Raises InvalidParameterValue."""
    found = sent.arguments()
    check_text(found)
    return {name: value for name, value in found.items() if value}


def check_path(sent: Sent) -> None:
    """Raises InvalidParameterValue: the path holds a NUL."""
    if "\0" in sent.path:
        raise bad("null bytes are not allowed")


class Versions:
    """The versions of some APIs: of each the prefix of its old one, and of the one after it."""

    def __init__(self, successors: Mapping[str, str]) -> None:
        self._endings = {
            f"{old}/": {
                "deprecation": "true",
                "sunset": _SUNSET,
                "link": f'<{new}/>; rel="successor-version"',
            }
            for old, new in successors.items()
        }

    def headers(self, path: str) -> Mapping[str, str]:
        for beginning, headers in self._endings.items():
            if path.startswith(beginning):
                return headers
        return {}

    def answering(
        self, function: Callable[[Any, Request], Answer]
    ) -> Callable[[Any, Request], Response]:
        """A route's function, from one that answers JSON."""

        @functools.wraps(function)
        def answer(message: Any, request: Request) -> Response:
            found = function(message, request)
            headers = self.headers(request.path)
            if isinstance(found, Response):
                return found._replace(headers={**headers, **found.headers})
            if found is None:
                return Response(204, "", JSON, headers)
            status = 200
            if isinstance(found, Made):
                found, status = found
            return fit(Response(status, json.dumps(found), JSON, headers), request.headers)

        return answer

    def manner(self) -> Manner:
        return Manner(self._failure, self._no_route, _refusal)

    def _failure(self, error: MlflowError, path: str) -> Response:
        if isinstance(error, EndpointNotFound):
            return Response(404, "404 page not found\n", "text/plain; charset=utf-8")
        body = json.dumps(error_body(error))
        headers = self.headers(path)
        if error.status == 429:
            headers = {**headers, "retry-after": _RETRY_SECONDS}
        return Response(error.status, body, JSON, headers)

    def _no_route(self, request: Request, methods: Mapping[str, Route]) -> Response:
        headers = {**self.headers(request.path), "allow": allowed_methods(methods)}
        return Response(204 if request.method == "OPTIONS" else 405, "", JSON, headers)


def _refusal(refused: Response) -> Response:
    code = {401: "Unauthorized", 403: "Forbidden"}.get(refused.status, "Error")
    text = refused.body if isinstance(refused.body, str) else str(refused.body)
    return refused._replace(body=json.dumps({"code": code, "message": text}), content_type=JSON)
