"""Errors of Kubeflow's registry, with its messages and statuses."""

from __future__ import annotations

from http import HTTPStatus

from mlcore.errors import InvalidParameterValue, MlflowError, ResourceConflict, ResourceDoesNotExist


class RequiredFieldMissing(MlflowError):
    """Raised if a required field is missing. The status is 422 although the body says Bad Request,
    as in Kubeflow's own server."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 422

    def __init__(self, field: str) -> None:
        super().__init__(f"required field '{field}' is zero value.")


def invalid(message: str) -> InvalidParameterValue:
    return InvalidParameterValue(message)


def missing_id(words: str, number: object) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(f"no {words} found for id {number}: not found")


def not_found(words: str) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(f"no {words} found: not found")


def name_taken(words: str, name: object) -> ResourceConflict:
    return ResourceConflict(f"{words} with name {name} already exists: already exists")


class ExternalIdTaken(ResourceConflict):
    """Raised if another entity of the kind has the external id.

    Args:
        kind: the name of the kind.
        words: the kind as messages name it.
    """

    def __init__(self, kind: str, words: str, external_id: str) -> None:
        super().__init__(f"{words} with externalId {external_id} already exists: already exists")
        self.kind = kind
        self.external_id = external_id


def body(error: MlflowError) -> dict[str, str]:
    """Returns the JSON object with which Kubeflow's APIs answer an error."""
    status = 400 if isinstance(error, RequiredFieldMissing) else error.status
    return {"code": HTTPStatus(status).phrase, "message": error.message[:100_000]}
