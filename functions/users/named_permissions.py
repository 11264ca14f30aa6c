"""Permissions on experiments and on registered models, each with RPCs of its own: what clients up
to 3.7 call. They are the same grants as those of :mod:`users.permissions`."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth.permissions import EXPERIMENT, REGISTERED_MODEL, Grant, check_permission
from mlcore.http import Request
from mlcore.repos import grants, users
from mlcore.repos.grants import GrantExists, GrantMissing
from mlcore.repos.users import HeldGrant
from users import messages as m
from users import responses
from users.parameters import text


def create_experiment_permission(
    message: m.ExperimentPermission, request: Request
) -> dict[str, Any]:
    experiment_id, username = text(message, "experiment_id"), text(message, "username")
    named = f"experiment_id={experiment_id}, username={username}"
    made = _create(message, request, username, EXPERIMENT, experiment_id, "Experiment", named)
    return {"experiment_permission": responses.experiment_permission(*made)}


def get_experiment_permission(message: m.ExperimentPermission, request: Request) -> dict[str, Any]:
    experiment_id, username = text(message, "experiment_id"), text(message, "username")
    user = users.get(username)
    found = grants.find(user, request.workspace, EXPERIMENT, experiment_id)
    if found is None:
        raise _no_experiment_permission(experiment_id, username)
    held = HeldGrant(request.workspace, found)
    return {"experiment_permission": responses.experiment_permission(user, held)}


def update_experiment_permission(
    message: m.ExperimentPermission, request: Request
) -> dict[str, Any]:
    experiment_id, username = text(message, "experiment_id"), text(message, "username")
    grant = Grant(EXPERIMENT, experiment_id, _level(message))
    try:
        grants.change(users.get(username), request.workspace, grant)
    except GrantMissing:
        raise _no_experiment_permission(experiment_id, username) from None
    return {}


def delete_experiment_permission(
    message: m.ExperimentPermission, request: Request
) -> dict[str, Any]:
    experiment_id, username = text(message, "experiment_id"), text(message, "username")
    try:
        grants.delete(users.get(username), request.workspace, EXPERIMENT, experiment_id)
    except GrantMissing:
        raise _no_experiment_permission(experiment_id, username) from None
    return {}


def create_registered_model_permission(
    message: m.RegisteredModelPermission, request: Request
) -> dict[str, Any]:
    name, username = text(message, "name"), text(message, "username")
    named = f"name={name}, username={username}"
    made = _create(message, request, username, REGISTERED_MODEL, name, "Registered model", named)
    return {"registered_model_permission": responses.model_permission(*made)}


def get_registered_model_permission(
    message: m.RegisteredModelPermission, request: Request
) -> dict[str, Any]:
    name, username = text(message, "name"), text(message, "username")
    user = users.get(username)
    found = grants.find(user, request.workspace, REGISTERED_MODEL, name)
    if found is None:
        raise _no_model_permission(name, username)
    held = HeldGrant(request.workspace, found)
    return {"registered_model_permission": responses.model_permission(user, held)}


def update_registered_model_permission(
    message: m.RegisteredModelPermission, request: Request
) -> dict[str, Any]:
    name, username = text(message, "name"), text(message, "username")
    grant = Grant(REGISTERED_MODEL, name, _level(message))
    try:
        grants.change(users.get(username), request.workspace, grant)
    except GrantMissing:
        raise _no_model_permission(name, username) from None
    return {}


def delete_registered_model_permission(
    message: m.RegisteredModelPermission, request: Request
) -> dict[str, Any]:
    name, username = text(message, "name"), text(message, "username")
    try:
        grants.delete(users.get(username), request.workspace, REGISTERED_MODEL, name)
    except GrantMissing:
        raise _no_model_permission(name, username) from None
    return {}


def _create(
    message: m.ExperimentPermission | m.RegisteredModelPermission,
    request: Request,
    username: str,
    resource_type: str,
    resource_id: str,
    noun: str,
    named: str,
) -> tuple[users.User, HeldGrant]:
    grant = Grant(resource_type, resource_id, _level(message))
    user = users.get(username)
    users.own_role_id(user, request.workspace)
    try:
        grants.create(user, request.workspace, grant)
    except GrantExists:
        raise errors.ResourceAlreadyExists(f"{noun} permission ({named}) already exists.") from None
    return user, HeldGrant(request.workspace, grant)


def _level(message: m.ExperimentPermission | m.RegisteredModelPermission) -> str:
    permission = text(message, "permission")
    check_permission(permission)
    return permission


def _no_experiment_permission(experiment_id: str, username: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(
        f"Experiment permission with experiment_id={experiment_id} and username={username} "
        "not found"
    )


def _no_model_permission(name: str, username: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(
        f"Registered model permission with name={name} and username={username} not found"
    )
