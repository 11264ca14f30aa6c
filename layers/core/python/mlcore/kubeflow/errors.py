"""What a request to Kubeflow's registry can end in, in that API's shape; owns its statuses."""

from __future__ import annotations

from http import HTTPStatus

from mlcore.errors import InvalidParameterValue, MlflowError, ResourceConflict, ResourceDoesNotExist


class RequiredFieldMissing(MlflowError):
    """422, although its body says Bad Request, as upstream's does."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 422

    def __init__(self, field: str) -> None:
        super().__init__(f"required field '{field}' is zero value.")


def bad(message: str) -> InvalidParameterValue:
    return InvalidParameterValue(message)


def missing(words: str, number: object) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(f"no {words} found for id {number}: not found")


def not_found(words: str) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(f"no {words} found: not found")


def taken(words: str, name: object) -> ResourceConflict:
    return ResourceConflict(f"{words} with name {name} already exists: already exists")


def external_id_taken(words: str, external_id: object) -> ResourceConflict:
    return ResourceConflict(f"{words} with externalId {external_id} already exists: already exists")


def body(error: MlflowError) -> dict[str, str]:
    """The JSON object of the answer."""
    status = 400 if isinstance(error, RequiredFieldMissing) else error.status
    return {"code": HTTPStatus(status).phrase, "message": error.message[:100_000]}
