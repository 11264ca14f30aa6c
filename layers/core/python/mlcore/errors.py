"""The MLflow errors that a request can end in; the only file that knows error codes and their HTTP
statuses.

Every error reaches the client as ``{"error_code", "message", "sqlstate", "error_class"}``, the last
two only for the codes that MLflow classifies. Clients repeat 429 and 5xx for minutes, so a caller's
mistake is never one of them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

MAX_MESSAGE_LENGTH: Final = 100_000
"""Of what a client sees: messages repeat values of the request, and a response that Lambda finds
too large becomes a 500."""


class MlflowError(Exception):
    """Base of all errors with an MLflow code; the message is shown to the client, so it names
    nothing internal."""

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
        """The JSON object of the response."""
        body = {"error_code": self.error_code, "message": self.message[:MAX_MESSAGE_LENGTH]}
        if self.sqlstate is not None and self.error_class is not None:
            body["sqlstate"] = self.sqlstate
            body["error_class"] = self.error_class
        return body


class _CallerError(MlflowError):
    """Caused by the request."""

    sqlstate = "KAM00"


class _ServiceError(MlflowError):
    """Caused by the service or by the state it is in."""

    sqlstate = "XXM00"


class InvalidParameterValue(_CallerError):
    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 400
    error_class = "INVALID_PARAMETER_VALUE"


class Detailed(InvalidParameterValue):
    """An error of a route that is FastAPI's on MLflow's server: ``{"detail": …}`` and nothing
    else."""

    def __init__(self, status: int, detail: Any) -> None:
        """
        Args:
            detail: a sentence, or JSON.
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
    """A field that the entity does not have, where MLflow gives it a class of its own."""

    sqlstate = "KAM04"
    error_class = "ATTRIBUTE_NOT_FOUND"


class BadRequest(_CallerError):
    error_code = "BAD_REQUEST"
    http_status = 400
    error_class = "INVALID_PARAMETER_VALUE"


class ResourceAlreadyExists(_CallerError):
    error_code = "RESOURCE_ALREADY_EXISTS"
    http_status = 400
    error_class = "RESOURCE_ALREADY_EXISTS"


class FeatureDisabled(_CallerError):
    """A feature that this deployment has switched off. 400 where MLflow's server says 500, which
    clients repeat."""

    error_code = "FEATURE_DISABLED"
    http_status = 400
    error_class = "FEATURE_DISABLED"


class Unauthenticated(MlflowError):
    error_code = "UNAUTHENTICATED"
    http_status = 401


class PermissionDenied(_CallerError):
    error_code = "PERMISSION_DENIED"
    http_status = 403
    error_class = "PERMISSION_DENIED"


class ResourceDoesNotExist(_CallerError):
    error_code = "RESOURCE_DOES_NOT_EXIST"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class NotFound(_CallerError):
    """A file of a trace, for which MLflow's server has a code of its own."""

    error_code = "NOT_FOUND"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class EndpointNotFound(_CallerError):
    """No such path. Clients read this code as "an older server" and fall back to an older
    endpoint."""

    error_code = "ENDPOINT_NOT_FOUND"
    http_status = 404
    error_class = "RESOURCE_NOT_FOUND"


class MethodNotAllowed(_CallerError):
    """A known path with another verb; only the status differs from :class:`EndpointNotFound`."""

    error_code = "ENDPOINT_NOT_FOUND"
    http_status = 405
    error_class = "RESOURCE_NOT_FOUND"


class ResourceConflict(MlflowError):
    error_code = "RESOURCE_CONFLICT"
    http_status = 409


class RequestLimitExceeded(MlflowError):
    error_code = "REQUEST_LIMIT_EXCEEDED"
    http_status = 429


class InvalidState(_ServiceError):
    """400 where MLflow's server says 500, which clients repeat for minutes."""

    error_code = "INVALID_STATE"
    http_status = 400
    error_class = "CLIENT_INTERNAL_ERROR"


class InternalError(_ServiceError):
    error_code = "INTERNAL_ERROR"
    error_class = "CLIENT_INTERNAL_ERROR"


class NotImplementedRpc(MlflowError):
    error_code = "NOT_IMPLEMENTED"
    http_status = 501


class TemporarilyUnavailable(_ServiceError):
    error_code = "TEMPORARILY_UNAVAILABLE"
    http_status = 503
    error_class = "CLIENT_INTERNAL_ERROR"


class GatewayCallFailed(MlflowError):
    """A call through the AI gateway that a provider refused, or that was not made. Its status is
    the provider's, and its callers read ``{"detail": …}``."""

    error_code = "BAD_REQUEST"

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(detail if isinstance(detail, str) else str(detail))
        self.detail = detail
        """A sentence, or the JSON object of a provider that has none."""
        self._status = status

    @property
    def status(self) -> int:
        return self._status


class AllModelsFailed(GatewayCallFailed):
    """None of the models that an endpoint falls back to has answered."""


class GuardrailViolation(GatewayCallFailed):
    """A guardrail of an endpoint does not let a request or an answer pass."""

    def __init__(self, name: str, rationale: str) -> None:
        super().__init__(400, f"Guardrail '{name}' blocked: {rationale}")


class InsufficientStorage(InternalError):
    """A disk is full. A status that clients do not repeat."""

    http_status = 507
