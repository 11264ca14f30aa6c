"""Adds to the gateway's errors the fields that the SDKs of OpenAI, Anthropic, Google and AWS read,
so that they raise the right exceptions. MLflow's own field is ``detail``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway.passthrough import proxied_action
from mlcore.providers.provider import ANTHROPIC_MESSAGES, GEMINI_STREAM_GENERATE_CONTENT

Json = dict[str, Any]

_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Anthropic's error types by status; OpenAI uses some of the same types.
https://docs.claude.com/en/api/errors."""
_GOOGLE_NAMES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""https://cloud.google.com/apis/design/errors#handling_errors"""

_AWS_NAMES: Final[Mapping[int, str]] = {
    400: "ValidationException",
    401: "AccessDeniedException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"""

_ROOT: Final = "/gateway/"
_BEDROCK: Final = re.compile(r"proxy/[^/]+/+(model|async-invoke|guardrail|guardrail-checks)(/|$)")
_GOOGLE_METHODS: Final = (
    *(":generateContent", ":countTokens", ":embedContent"),
    *(":batchEmbedContents", ":batchGenerateContent"),
)
_ANTHROPIC_PATHS: Final = ("/v1/messages/count_tokens", "/v1/messages/batches")
"""The ends of Anthropic's other paths, besides ``/v1/messages``."""


def anthropic_fields(status: int, message: str) -> Json:
    """Returns the response body of an error in the form of Anthropic's API."""
    kind = _type(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def google_fields(status: int, message: str) -> Json:
    """Returns the response body of an error in the form of Google's APIs."""
    unknown = "INVALID_ARGUMENT" if status < 500 else "UNKNOWN"
    name = _GOOGLE_NAMES.get(status, unknown)
    return {"error": {"code": status, "message": message, "status": name}}


def aws_name(status: int) -> str:
    """Returns the name of Amazon Bedrock's exception for an HTTP status."""
    unknown = "ValidationException" if status < 500 else "InternalServerException"
    return _AWS_NAMES.get(status, unknown)


def sdk_fields(error: MlflowError, path: str) -> Json:
    """Returns the fields of an error response of the AI gateway in the form that the SDK for this
    path reads. On a provider's own paths these are the fields of the provider's error if the
    provider refused the call. Any other error is converted to the form of that SDK.

    Args:
        path: the whole path of the request.
    """
    refusal: Mapping[str, Any] = {}
    if isinstance(error, GatewayCallFailed):
        refusal = error.provider_fields
    route = path.partition(_ROOT)[2]
    if _is_common(route):  # also if the endpoint has the name of a provider
        return _openai_fields(error.status, _message(error), refusal.get("error"))
    if refusal:
        return {name: value for name, value in refusal.items() if name != "detail"}
    return _own_fields(error, route)


def _is_common(route: str) -> bool:
    """Whether the route has the same form for all providers."""
    first, _, rest = route.partition("/")
    return first == "mlflow" or rest == "mlflow/invocations"


def _own_fields(error: MlflowError, route: str) -> Json:
    """Returns an error of the gateway itself in the form that the route's SDK expects."""
    status, message = error.status, _message(error)
    if _BEDROCK.match(route):
        return {"__type": aws_name(status), "message": message}
    if _is_form_of(route, "gemini", GEMINI_STREAM_GENERATE_CONTENT) or route.endswith(
        _GOOGLE_METHODS
    ):
        return google_fields(status, message)
    if _is_form_of(route, "anthropic", ANTHROPIC_MESSAGES) or route.endswith(_ANTHROPIC_PATHS):
        return anthropic_fields(status, message)
    return _openai_fields(status, message, None)


def _openai_fields(status: int, message: str, refusal: Any) -> Json:
    """Returns the response body of an error in the form of OpenAI's API.

    Args:
        refusal: the provider's error, if it refused the call.
    """
    known = refusal if isinstance(refusal, dict) else {}
    kind = _type(status, "server_error")
    return {
        "error": {
            "message": message,
            "type": known.get("type") or kind,
            "param": known.get("param"),
            "code": known.get("code"),
        }
    }


def _type(status: int, otherwise: str) -> str:
    """Returns the type of an error. Other 4xx statuses have the type ``invalid_request_error``,
    other 5xx the type ``otherwise``."""
    return _TYPES.get(status, "invalid_request_error" if status < 500 else otherwise)


def _message(error: MlflowError) -> str:
    """Returns the message of an error: the provider's, if the error's detail contains it."""
    detail = error.detail if isinstance(error, GatewayCallFailed) else None
    message = detail.get("message") if isinstance(detail, dict) else None
    return message if isinstance(message, str) else error.message


def _is_form_of(route: str, provider: str, action: str) -> bool:
    first = route.partition("/")[0]
    return first == provider or (first == "proxy" and proxied_action(route) == action)
