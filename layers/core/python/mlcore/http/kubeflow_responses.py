"""Responses of Kubeflow's APIs: JSON, error bodies, and deprecation headers of old versions."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import EndpointNotFound, MlflowError
from mlcore.http.compression import fit
from mlcore.http.handler import ErrorFormat
from mlcore.http.raw_request import Sent
from mlcore.http.request import Request
from mlcore.http.response import Response, retry_headers
from mlcore.http.routes import Route, allowed_methods
from mlcore.kubeflow.body import check_text
from mlcore.kubeflow.errors import body as error_body
from mlcore.kubeflow.errors import invalid

JSON: Final = "application/json; charset=UTF-8"

_SUNSET: Final = "Fri, 31 Dec 2027 23:59:59 GMT"


class AnswerWithStatus(NamedTuple):
    """The answer of the function that handles a Kubeflow request, with its HTTP status if that is
    not 200, such as 201 for a created entity."""

    answer: dict[str, Any]
    status: int = 201


Answer = dict[str, Any] | AnswerWithStatus | Response | None
"""None becomes 204 without a body; a Response is sent unchanged."""


def arguments(sent: Sent) -> dict[str, str]:
    """Returns the URL's query parameters that are not empty. Raises InvalidParameterValue if one
    holds a NUL or a lone surrogate."""
    parameters = sent.arguments()
    check_text(parameters)
    return {name: value for name, value in parameters.items() if value}


def check_path(sent: Sent) -> None:
    """Checks that the request's path holds no NUL character. Raises InvalidParameterValue
    otherwise."""
    if "\0" in sent.path:
        raise invalid("null bytes are not allowed")


class Versions:
    """The old versions of a Kubeflow API: the path prefixes of each and of what replaces it."""

    def __init__(self, successors: Mapping[str, str]) -> None:
        self._deprecation_headers = {
            f"{old}/": {
                "deprecation": "true",
                "sunset": _SUNSET,
                "link": f'<{new}/>; rel="successor-version"',
            }
            for old, new in successors.items()
        }

    def headers(self, path: str) -> Mapping[str, str]:
        """Returns the deprecation headers for a path of Kubeflow's API; none for a current version
        of that API."""
        for beginning, headers in self._deprecation_headers.items():
            if path.startswith(beginning):
                return headers
        return {}

    def answering(
        self, function: Callable[[Any, Request], Answer]
    ) -> Callable[[Any, Request], Response]:
        """Wraps a function of Kubeflow's API that returns the JSON value to answer, so that it
        returns the HTTP response, with the deprecation headers for the API version in the path."""

        @functools.wraps(function)
        def answer(message: Any, request: Request) -> Response:
            result = function(message, request)
            headers = self.headers(request.path)
            if isinstance(result, Response):
                return result._replace(headers={**headers, **result.headers})
            if result is None:
                return Response(204, "", JSON, headers)
            status = 200
            if isinstance(result, AnswerWithStatus):
                result, status = result
            return fit(Response(status, json.dumps(result), JSON, headers), request.headers)

        return answer

    def error_format(self) -> ErrorFormat:
        return ErrorFormat(self._failure, self._no_route, _refusal)

    def _failure(self, error: MlflowError, path: str) -> Response:
        if isinstance(error, EndpointNotFound):
            return Response(404, "404 page not found\n", "text/plain; charset=utf-8")
        body = json.dumps(error_body(error))
        headers = self.headers(path)
        return Response(error.status, body, JSON, {**headers, **retry_headers(error)})

    def _no_route(self, request: Request, methods: Mapping[str, Route]) -> Response:
        headers = {**self.headers(request.path), "allow": allowed_methods(methods)}
        return Response(204 if request.method == "OPTIONS" else 405, "", JSON, headers)


def _refusal(refused: Response, _path: str) -> Response:
    code = {401: "Unauthorized", 403: "Forbidden"}.get(refused.status, "Error")
    text = refused.body if isinstance(refused.body, str) else str(refused.body)
    return refused._replace(body=json.dumps({"code": code, "message": text}), content_type=JSON)
