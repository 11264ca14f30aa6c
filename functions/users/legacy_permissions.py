"""The RPCs with which clients up to 3.12 grant permissions on experiments, registered models and
scorers. They write the same grants as :mod:`users.permissions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mlcore import errors
from mlcore.auth.permissions import (
    EXPERIMENT,
    REGISTERED_MODEL,
    SCORER,
    Grant,
    check_permission,
    scorer_pattern,
)
from mlcore.entities.users import HeldGrant, User
from mlcore.http import Request
from mlcore.repos.users import grants, users
from mlcore.repos.users.grants import GrantExists, GrantMissing
from mlcore.responses import users as responses
from mlcore.wire.untyped_message import text
from users import messages as m

Permission = m.ExperimentPermission | m.RegisteredModelPermission | m.ScorerPermission


class LegacyPermissions(NamedTuple):
    """The four RPCs with which old clients manage permissions on one type of resource."""

    resource_type: str
    fields: tuple[str, ...]
    """The fields of a message that together name the resource."""
    pattern: Callable[..., str]
    """Returns the resource pattern of a grant for the values of these fields."""
    noun: str
    """The resource, as error messages name it."""
    answer: str
    """The field of the response that holds the grant."""
    response: Callable[[User, HeldGrant], dict[str, Any]]
    """Returns the JSON of a grant."""

    def create(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._resource_and_user(message)
        grant = Grant(self.resource_type, resource_id, _level(message))
        user = users.get(username)
        users.own_role_id(user, request.workspace)
        try:
            grants.create(user, request.workspace, grant)
        except GrantExists:
            raise errors.ResourceAlreadyExists(
                f"{self.noun} permission ({', '.join(self._field_texts(message))}, "
                f"username={username}) already exists."
            ) from None
        return {self.answer: self.response(user, HeldGrant(request.workspace, grant))}

    def get(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._resource_and_user(message)
        user = users.get(username)
        grant = grants.find(user, request.workspace, self.resource_type, resource_id)
        if grant is None:
            raise self._missing(message, username)
        return {self.answer: self.response(user, HeldGrant(request.workspace, grant))}

    def update(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._resource_and_user(message)
        grant = Grant(self.resource_type, resource_id, _level(message))
        try:
            grants.change(users.get(username), request.workspace, grant)
        except GrantMissing:
            raise self._missing(message, username) from None
        return {}

    def delete(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._resource_and_user(message)
        try:
            grants.delete(users.get(username), request.workspace, self.resource_type, resource_id)
        except GrantMissing:
            raise self._missing(message, username) from None
        return {}

    def _resource_and_user(self, message: Permission) -> tuple[str, str]:
        values = [text(message, field) for field in self.fields]
        return self.pattern(*values), text(message, "username")

    def _field_texts(self, message: Permission) -> list[str]:
        return [f"{field}={text(message, field)}" for field in self.fields]

    def _missing(self, message: Permission, username: str) -> errors.ResourceDoesNotExist:
        texts = self._field_texts(message)
        description = f"{', '.join(texts)}{',' if len(texts) > 1 else ''} and username={username}"
        return errors.ResourceDoesNotExist(f"{self.noun} permission with {description} not found")


OF_EXPERIMENTS = LegacyPermissions(
    EXPERIMENT,
    ("experiment_id",),
    str,
    "Experiment",
    "experiment_permission",
    responses.experiment_permission,
)
OF_MODELS = LegacyPermissions(
    REGISTERED_MODEL,
    ("name",),
    str,
    "Registered model",
    "registered_model_permission",
    responses.model_permission,
)
OF_SCORERS = LegacyPermissions(
    SCORER,
    ("experiment_id", "scorer_name"),
    scorer_pattern,
    "Scorer",
    "scorer_permission",
    responses.scorer_permission,
)


def _level(message: Permission) -> str:
    permission = text(message, "permission")
    check_permission(permission)
    return permission
