"""Permissions on experiments, on registered models and on scorers, each with RPCs of its own: what
clients up to 3.7 call. They are the same grants as those of :mod:`users.permissions`."""

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
from mlcore.wire.parameters import text
from users import messages as m

Permission = m.ExperimentPermission | m.RegisteredModelPermission | m.ScorerPermission


class NamedPermissions(NamedTuple):
    """The four RPCs about one type of resource."""

    resource_type: str
    fields: tuple[str, ...]
    """Of a message, which together name the resource."""
    pattern: Callable[..., str]
    """What a grant says for the values of these fields."""
    noun: str
    answer: str
    shown: Callable[[User, HeldGrant], dict[str, Any]]

    def create(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._named(message)
        grant = Grant(self.resource_type, resource_id, _level(message))
        user = users.get(username)
        users.own_role_id(user, request.workspace)
        try:
            grants.create(user, request.workspace, grant)
        except GrantExists:
            raise errors.ResourceAlreadyExists(
                f"{self.noun} permission ({', '.join(self._shown(message))}, "
                f"username={username}) already exists."
            ) from None
        return {self.answer: self.shown(user, HeldGrant(request.workspace, grant))}

    def get(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._named(message)
        user = users.get(username)
        found = grants.find(user, request.workspace, self.resource_type, resource_id)
        if found is None:
            raise self._missing(message, username)
        return {self.answer: self.shown(user, HeldGrant(request.workspace, found))}

    def update(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._named(message)
        grant = Grant(self.resource_type, resource_id, _level(message))
        try:
            grants.change(users.get(username), request.workspace, grant)
        except GrantMissing:
            raise self._missing(message, username) from None
        return {}

    def delete(self, message: Permission, request: Request) -> dict[str, Any]:
        resource_id, username = self._named(message)
        try:
            grants.delete(users.get(username), request.workspace, self.resource_type, resource_id)
        except GrantMissing:
            raise self._missing(message, username) from None
        return {}

    def _named(self, message: Permission) -> tuple[str, str]:
        values = [text(message, field) for field in self.fields]
        return self.pattern(*values), text(message, "username")

    def _shown(self, message: Permission) -> list[str]:
        return [f"{field}={text(message, field)}" for field in self.fields]

    def _missing(self, message: Permission, username: str) -> errors.ResourceDoesNotExist:
        shown = self._shown(message)
        named = f"{', '.join(shown)}{',' if len(shown) > 1 else ''} and username={username}"
        return errors.ResourceDoesNotExist(f"{self.noun} permission with {named} not found")


OF_EXPERIMENTS = NamedPermissions(
    EXPERIMENT,
    ("experiment_id",),
    str,
    "Experiment",
    "experiment_permission",
    responses.experiment_permission,
)
OF_MODELS = NamedPermissions(
    REGISTERED_MODEL,
    ("name",),
    str,
    "Registered model",
    "registered_model_permission",
    responses.model_permission,
)
OF_SCORERS = NamedPermissions(
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
