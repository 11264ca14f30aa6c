"""The error bodies that a stock server sends for the same codes."""

import pytest

from mlcore import errors as e

USER = "KAM00"
INVALID = (USER, "INVALID_PARAMETER_VALUE")
EXISTS = (USER, "RESOURCE_ALREADY_EXISTS")
SERVICE = ("XXM00", "CLIENT_INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("error", "status", "code", "classification"),
    [
        (e.InvalidParameterValue, 400, "INVALID_PARAMETER_VALUE", INVALID),
        (e.BadRequest, 400, "BAD_REQUEST", (USER, "INVALID_PARAMETER_VALUE")),
        (e.ResourceAlreadyExists, 400, "RESOURCE_ALREADY_EXISTS", EXISTS),
        (e.FeatureDisabled, 400, "FEATURE_DISABLED", (USER, "FEATURE_DISABLED")),
        (e.PermissionDenied, 403, "PERMISSION_DENIED", (USER, "PERMISSION_DENIED")),
        (e.ResourceDoesNotExist, 404, "RESOURCE_DOES_NOT_EXIST", (USER, "RESOURCE_NOT_FOUND")),
        (e.NotFound, 404, "NOT_FOUND", (USER, "RESOURCE_NOT_FOUND")),
        (e.EndpointNotFound, 404, "ENDPOINT_NOT_FOUND", (USER, "RESOURCE_NOT_FOUND")),
        (e.MethodNotAllowed, 405, "ENDPOINT_NOT_FOUND", (USER, "RESOURCE_NOT_FOUND")),
        (e.ResourceConflict, 409, "RESOURCE_CONFLICT", None),
        (e.RequestLimitExceeded, 429, "REQUEST_LIMIT_EXCEEDED", None),
        (e.InvalidState, 400, "INVALID_STATE", SERVICE),
        (e.InternalError, 500, "INTERNAL_ERROR", SERVICE),
        (e.TemporarilyUnavailable, 503, "TEMPORARILY_UNAVAILABLE", SERVICE),
    ],
)  # fmt: skip
def test_body_and_status(
    error: type[e.MlflowError], status: int, code: str, classification: tuple[str, str] | None
) -> None:
    raised = error("why")
    expected = {"error_code": code, "message": "why"}
    if classification:
        expected["sqlstate"], expected["error_class"] = classification
    assert raised.status == status
    assert raised.body() == expected
    assert str(raised) == "why"
