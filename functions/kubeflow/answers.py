"""The form of Kubeflow's answers: JSON, its errors, and what v1alpha3 says of its own end."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import EndpointNotFound, MlflowError
from mlcore.http import Request, Response
from mlcore.http.compression import fit
from mlcore.http.handler import Manner
from mlcore.http.routes import Route, allowed_methods
from mlcore.kubeflow import body
from mlcore.kubeflow.entity import V1, Entity, response
from mlcore.kubeflow.errors import bad
from mlcore.kubeflow.errors import body as error_body

PREFIX: Final = "/api/model_registry"
OLD: Final = "v1alpha3"
JSON: Final = "application/json; charset=UTF-8"
_ENDING: Final = {
    "deprecation": "true",
    "sunset": "Fri, 31 Dec 2027 23:59:59 GMT",
    "link": f'<{PREFIX}/{V1}/>; rel="successor-version"',
}


class Made(NamedTuple):
    """An answer with another status than 200."""

    answer: dict[str, Any]
    status: int = 201


class Call(NamedTuple):
    """A request as the rules of a domain take it."""

    request: Request
    api: str

    @property
    def workspace(self) -> str:
        return self.request.workspace

    @property
    def username(self) -> str | None:
        """The caller; None where nobody needs to log in."""
        access = self.request.access
        return None if access is None else str(access.username)

    def arguments(self) -> dict[str, str]:
        """The query, without what is empty. Raises InvalidParameterValue."""
        found = self.request.arguments()
        body.check_text(found)
        return {name: value for name, value in found.items() if value}

    def json(self) -> dict[str, Any]:
        """Raises InvalidParameterValue."""
        return body.parse(self.request.body())

    def number(self, name: str, words: str) -> int:
        """An id in the path. Raises InvalidParameterValue."""
        return body.number(self.request.parameters.get(name, ""), words)

    def shown(self, entity: Entity) -> dict[str, Any]:
        return response(entity, self.api)


Function = Callable[[Call], dict[str, Any] | Made | None]


def answering(function: Function) -> Callable[[Request], Response]:
    @functools.wraps(function)
    def answer(request: Request) -> Response:
        if "\0" in request.path:
            raise bad("null bytes are not allowed")
        api = api_of(request.path)
        found = function(Call(request, api))
        if found is None:
            return Response(204, "", JSON, _headers(request.path))
        status = 200
        if isinstance(found, Made):
            found, status = found
        text = json.dumps(found)
        return fit(Response(status, text, JSON, _headers(request.path)), request.headers)

    return answer


def api_of(path: str) -> str:
    return OLD if path.startswith(f"{PREFIX}/{OLD}/") else V1


def _headers(path: str) -> Mapping[str, str]:
    return _ENDING if api_of(path) == OLD else {}


def _failure(error: MlflowError, path: str) -> Response:
    if isinstance(error, EndpointNotFound):
        return Response(404, "404 page not found\n", "text/plain; charset=utf-8")
    return Response(error.status, json.dumps(error_body(error)), JSON, _headers(path))


def _no_route(request: Request, methods: Mapping[str, Route]) -> Response:
    allow = {"allow": allowed_methods(methods)}
    status = 204 if request.method == "OPTIONS" else 405
    return Response(status, "", JSON, {**_headers(request.path), **allow})


def _refusal(refused: Response) -> Response:
    code = {401: "Unauthorized", 403: "Forbidden"}.get(refused.status, "Error")
    text = refused.body if isinstance(refused.body, str) else refused.body.decode()
    return refused._replace(body=json.dumps({"code": code, "message": text}), content_type=JSON)


MANNER: Final = Manner(_failure, _no_route, _refusal)
