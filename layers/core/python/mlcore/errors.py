"""MLflow's errors, with their error codes and HTTP statuses.

Clients get ``{"error_code", "message", "sqlstate", "error_class"}``; the last two only for codes
that MLflow classifies. (:class:`Detailed` and :class:`GatewayCallFailed` have other bodies.)
Clients retry 429, 500, 502, 503 and 504 for minutes, so a caller's mistake never has such a status.
Since MLflow 3.18 they retry a POST that creates after 429 only: see :mod:`mlcore.http.handler`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

MAX_MESSAGE_LENGTH: Final = 100_000
"""Maximum characters of a message in a response: messages quote values of the request, and Lambda
turns a response that is too large into a 500."""


_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class MlflowError(Exception):
    """Base of all errors with an MLflow code. Clients see the message, so it must not contain
    internals."""

    error_code: ClassVar[str] = "INTERNAL_ERROR"
    http_status: ClassVar[int] = 500
    sqlstate: ClassVar[str | None] = None
    error_class: ClassVar[str | None] = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def status(self) -> int:
        return self.http_status

    def body(self) -> dict[str, Any]:
        """Returns this error as the JSON object of the response's body."""
        body = {"error_code": self.error_code, "message": self.message[:MAX_MESSAGE_LENGTH]}
        if self.sqlstate is not None and self.error_class is not None:
            body["sqlstate"] = self.sqlstate
            body["error_class"] = self.error_class
        return body


class _CallerError(MlflowError):
    """Base of errors that the request causes."""

    sqlstate = "KAM00"


class _ServiceError(MlflowError):
    """Base of errors that the service or its state causes."""

    sqlstate = "XXM00"


class InvalidParameterValue(_CallerError):
    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 400
    error_class = "INVALID_PARAMETER_VALUE"


class Detailed(InvalidParameterValue):
    """An error in the form of FastAPI (``{"detail": …}``), for routes that MLflow's server
    implements with FastAPI."""

    def __init__(self, status: int, detail: Any) -> None:
        """Makes the error.

        Args:
            status: the HTTP status of the response.
            detail: the value of ``detail`` in the response: a sentence, or JSON.
        """
        super().__init__(detail if isinstance(detail, str) else "The request does not fit.")
        self._status = status
        self._detail = detail

    @property
    def status(self) -> int:
        return self._status

    def body(self) -> dict[str, Any]:
        is_text = isinstance(self._detail, str)
        return {"detail": self._detail[:MAX_MESSAGE_LENGTH] if is_text else self._detail}


class AttributeNotFound(InvalidParameterValue):
    """The request names a field that does not exist. Used where MLflow has a separate error class
    for this (``ATTRIBUTE_NOT_FOUND``)."""

    sqlstate = "KAM04"
    error_class = "ATTRIBUTE_NOT_FOUND"


class BadRequest(_CallerError):
    error_code = "BAD_REQUEST"
    http_status = 400
    error_class = "INVALID_PARAMETER_VALUE"


class ContentTooLarge(BadRequest):
    """The request's body, or a part of it, is larger than allowed."""

    http_status = 413


class ResourceAlreadyExists(_CallerError):
    error_code = "RESOURCE_ALREADY_EXISTS"
    http_status = 400
    error_class = "RESOURCE_ALREADY_EXISTS"


class FeatureDisabled(_CallerError):
    """The request needs a feature that is off in this deployment. Status 400; MLflow's server
    returns 500, which clients retry."""

    error_code = "FEATURE_DISABLED"
    http_status = 400
    error_class = "FEATURE_DISABLED"


class PermissionDenied(_CallerError):
    error_code = "PERMISSION_DENIED"
    http_status = 403
    error_class = "PERMISSION_DENIED"


class ResourceDoesNotExist(_CallerError):
    error_code = "RESOURCE_DOES_NOT_EXIST"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class NotFound(_CallerError):
    """A file of a trace is missing. MLflow has the code ``NOT_FOUND`` for this, and another one for
    other missing resources."""

    error_code = "NOT_FOUND"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class EndpointNotFound(_CallerError):
    """No route of the API has the request's path. Clients conclude from this error code that the
    server is older, and try an older route."""

    error_code = "ENDPOINT_NOT_FOUND"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class MethodNotAllowed(_CallerError):
    """The path exists, but not with the request's HTTP method. The error code is that of
    :class:`EndpointNotFound`; only the status (405) differs."""

    error_code = "ENDPOINT_NOT_FOUND"
    http_status = 405
    error_class = "RESOURCE_NOT_FOUND"


class ResourceConflict(MlflowError):
    error_code = "RESOURCE_CONFLICT"
    http_status = 409


class RequestLimitExceeded(MlflowError):
    """The server refuses the request because of its load or of concurrent writes (429). Clients
    retry it."""

    error_code = "REQUEST_LIMIT_EXCEEDED"
    http_status = 429
    retry_seconds = 1
    """After how many seconds the client may repeat the request (``Retry-After``)."""


class RunMoved(RequestLimitExceeded):
    """A run is in another experiment than the one that this process had cached for it. The request
    is executed again, with the rights on the other experiment; the client sees this error only if
    that fails, too."""

    def __init__(self) -> None:
        super().__init__("A run was moved to another experiment meanwhile. Try again.")


class CallerLimitReached(MlflowError):
    """A refusal because the caller exceeded a limit on requests, whatever the server's load is."""

    error_code = "REQUEST_LIMIT_EXCEEDED"
    http_status = 429

    def __init__(self, message: str, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class InvalidState(_ServiceError):
    """The entity is in a state in which the request is not possible. Status 400; MLflow's server
    returns 500, which clients retry for minutes."""

    error_code = "INVALID_STATE"
    http_status = 400
    error_class = "CLIENT_INTERNAL_ERROR"


class InternalError(_ServiceError):
    error_code = "INTERNAL_ERROR"
    error_class = "CLIENT_INTERNAL_ERROR"


class TemporarilyUnavailable(_ServiceError):
    error_code = "TEMPORARILY_UNAVAILABLE"
    http_status = 503
    error_class = "CLIENT_INTERNAL_ERROR"


class FailureTraits(NamedTuple):
    """What the gateway knows about a failed call to a model provider, for example whether the
    request may be sent again. By default nothing is known: the provider may have executed the call,
    or the gateway never sent it."""

    is_answer: bool = False
    """Whether the provider answered with the error's status."""
    is_unsent: bool = False
    """Whether the provider refused the connection, so that nothing was sent."""
    is_repeatable: bool = False
    """Whether the provider refused the request or the connection before it worked on the request,
    and did not forbid to send the request again. Then the same request may be sent again without
    being executed twice."""
    is_unavailable: bool = False
    """Whether the failure says that the provider cannot serve any request now."""


_NOTHING_KNOWN: Final = FailureTraits()


class GatewayCallFailed(MlflowError):
    """A call through the AI gateway that failed at the provider or was refused by the gateway. It
    has the provider's status or one that the gateway chose; gateway routes return it as
    ``{"detail": …}``, with the fields that the SDKs of providers read."""

    error_code = "BAD_REQUEST"

    def __init__(
        self,
        status: int,
        detail: Any,
        retry_after: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        traits: FailureTraits = _NOTHING_KNOWN,
        provider_fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail if isinstance(detail, str) else str(detail))
        self.traits = traits
        self.headers = headers
        """Further headers of the response."""
        self.detail = detail
        """A message, or the provider's JSON object if that contains no message."""
        self.retry_after = retry_after
        """The provider's ``Retry-After``: seconds, or a date."""
        self.provider_fields = provider_fields
        """The JSON object with which the provider refused the call; empty if it did not."""
        self._status = status

    @property
    def status(self) -> int:
        return self._status

    @property
    def retry_seconds(self) -> float | None:
        """The number of seconds in ``retry_after``; None if there is none, or if it is a date."""
        text = self.retry_after
        return float(text) if text is not None and _SECONDS.fullmatch(text) else None

    def with_texts(
        self, detail: Any, retry_after: str | None, provider_fields: Mapping[str, Any]
    ) -> GatewayCallFailed:
        """Returns a copy of this failure with another message, ``Retry-After`` and provider
        fields."""
        return GatewayCallFailed(
            *(self._status, detail, retry_after, self.headers),
            traits=self.traits,
            provider_fields=provider_fields,
        )


class CallerLeft(GatewayCallFailed):
    """The caller of a model closed its connection before the answer. Nobody gets the response; 499
    is nginx's status for it."""

    def __init__(self) -> None:
        super().__init__(499, "The caller closed the connection before the answer.")


class ServerStops(CallerLeft):
    """The server was told to stop while a call of a model was open. Clients may repeat the call."""

    def __init__(self) -> None:
        GatewayCallFailed.__init__(
            self, 503, "The server is stopping. Repeat the call when it has started again."
        )


class AllModelsFailed(GatewayCallFailed):
    """Raised if all models of a gateway endpoint failed, its fallbacks included."""


class GuardrailViolation(GatewayCallFailed):
    """Raised if a guardrail of a gateway endpoint blocks a request or a response."""

    def __init__(self, name: str, rationale: str) -> None:
        super().__init__(400, f"Guardrail '{name}' blocked: {rationale}")


class InsufficientStorage(InternalError):
    """Nothing can be saved until somebody acts: the disk is full, or a file is read-only. Status
    507, which clients do not retry."""

    http_status = 507
