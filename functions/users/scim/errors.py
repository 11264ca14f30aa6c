"""The errors of SCIM, and the form of the responses to them (RFC 7644, section 3.12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.errors import MAX_MESSAGE_LENGTH, MlflowError
from mlcore.http import Request, Response
from mlcore.http.handler import MLFLOW_FORMAT, ErrorFormat
from mlcore.http.response import retry_headers
from mlcore.http.routes import Route, allowed_methods

PREFIX: Final = "/scim/"
CONTENT_TYPE: Final = "application/scim+json"
ERROR_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:Error"


class ScimError(MlflowError):
    """Raised for a request of a directory that SCIM refuses."""

    error_code = "BAD_REQUEST"

    def __init__(self, status: int, detail: str, scim_type: str = "") -> None:
        """
        Args:
            scim_type: one of RFC 7644's keywords, such as ``uniqueness``; "" for none.
        """
        super().__init__(detail)
        self.scim_type = scim_type
        self._status = status

    @property
    def status(self) -> int:
        return self._status

    def body(self) -> dict[str, Any]:
        return error_body(self.status, self.message, self.scim_type)


def invalid_value(detail: str) -> ScimError:
    return ScimError(400, detail, "invalidValue")


def invalid_syntax(detail: str) -> ScimError:
    return ScimError(400, detail, "invalidSyntax")


def invalid_filter(detail: str) -> ScimError:
    return ScimError(400, detail, "invalidFilter")


def missing(kind: str, scim_id: str) -> ScimError:
    return ScimError(404, f"{kind} {scim_id} not found.")


def taken(detail: str) -> ScimError:
    return ScimError(409, detail, "uniqueness")


def error_body(status: int, detail: str, scim_type: str = "") -> dict[str, Any]:
    """Returns the JSON body of a SCIM error response."""
    body: dict[str, Any] = {"schemas": [ERROR_SCHEMA], "status": str(status)}
    if scim_type:
        body["scimType"] = scim_type
    return {**body, "detail": detail[:MAX_MESSAGE_LENGTH]}


def _failure(error: MlflowError, path: str) -> Response:
    if not path.startswith(PREFIX):
        return MLFLOW_FORMAT.failure(error, path)
    is_invalid = isinstance(error, errors.InvalidParameterValue)
    scim_type = getattr(error, "scim_type", "invalidValue" if is_invalid else "")
    body = json.dumps(error_body(error.status, error.message, scim_type), ensure_ascii=False)
    return Response(error.status, body, CONTENT_TYPE, retry_headers(error))


def _no_route(request: Request, methods: Mapping[str, Route]) -> Response:
    if not request.path.startswith(PREFIX) or request.method == "OPTIONS":
        return MLFLOW_FORMAT.no_route(request, methods)
    detail = f"{request.path} does not answer {request.method}."
    headers = {"allow": allowed_methods(methods)}
    return Response(405, json.dumps(error_body(405, detail)), CONTENT_TYPE, headers)


def _refusal(refused: Response, path: str) -> Response:
    if not path.startswith(PREFIX):
        return refused
    detail = {401: "Log in.", 403: "You may not provision users."}.get(refused.status)
    if detail is None:
        detail = refused.body if isinstance(refused.body, str) else "The request is refused."
    body = json.dumps(error_body(refused.status, detail))
    return refused._replace(body=body, content_type=CONTENT_TYPE)


ERROR_FORMAT: Final = ErrorFormat(_failure, _no_route, _refusal)
"""SCIM's form of errors for the paths of SCIM, MLflow's form for all others."""
