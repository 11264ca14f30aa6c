"""Users, roles and grants as clients get them; no hash of a password is among their fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, SCORER, scorer_of
from mlcore.entities.users import Assignment, HeldGrant, Profile, Role, RolePermission, User
from mlcore.entities.workspaces import DEFAULT_WORKSPACE


def user(made: User) -> dict[str, Any]:
    return {"id": made.user_id, "username": made.username, "is_admin": made.is_admin}


def profile(found: Profile) -> dict[str, Any]:
    """A user with the lists of grants that clients before roles ask for: those from 3.5 to 3.7 fail
    without the one of scorers, older ones do not look at it."""
    return {
        **user(found.user),
        "experiment_permissions": [
            experiment_permission(found.user, held)
            for held in found.grants
            if held.grant.resource_type == EXPERIMENT
        ],
        "registered_model_permissions": [
            model_permission(found.user, held)
            for held in found.grants
            if held.grant.resource_type == REGISTERED_MODEL
        ],
        "scorer_permissions": [
            scorer_permission(found.user, held)
            for held in found.grants
            if held.grant.resource_type == SCORER and held.grant.resource_pattern != ANY
        ],
    }


def experiment_permission(owner: User, held: HeldGrant) -> dict[str, Any]:
    return {
        "experiment_id": held.grant.resource_pattern,
        "user_id": owner.user_id,
        "permission": held.grant.permission,
    }


def model_permission(owner: User, held: HeldGrant) -> dict[str, Any]:
    return {
        "workspace": held.workspace,
        "name": held.grant.resource_pattern,
        "user_id": owner.user_id,
        "permission": held.grant.permission,
    }


def scorer_permission(owner: User, held: HeldGrant) -> dict[str, Any]:
    experiment_id, name = scorer_of(held.grant.resource_pattern)
    return {
        "experiment_id": experiment_id,
        "scorer_name": name,
        "user_id": owner.user_id,
        "permission": held.grant.permission,
    }


def role(found: Role) -> dict[str, Any]:
    return {
        "id": found.role_id,
        "name": found.name,
        "workspace": found.workspace,
        "description": found.description,
        "permissions": [role_permission(held, found.role_id) for held in found.permissions],
    }


def role_permission(held: RolePermission, role_id: int) -> dict[str, Any]:
    return {
        "id": held.permission_id,
        "role_id": role_id,
        "resource_type": held.grant.resource_type,
        "resource_pattern": held.grant.resource_pattern,
        "permission": held.grant.permission,
    }


def assignment(made: Assignment) -> dict[str, Any]:
    return {"id": made.assignment_id, "user_id": made.user_id, "role_id": made.role_id}


def own_roles(found: Profile) -> list[Role]:
    """A user's own grants as MLflow shows them: as one role in each workspace, the user's alone,
    which stays when the last grant goes."""
    held_in = {held.workspace for held in found.grants}
    workspaces = sorted(held_in | set(found.user.role_ids), key=_default_first)
    return [
        Role(
            role_id := found.user.role_ids.get(workspace, 0),
            f"__user_{found.user.user_id}__",
            workspace,
            None,
            tuple(_numbered(found.grants, workspace, role_id)),
        )
        for workspace in workspaces
    ]


def _numbered(grants: Iterable[HeldGrant], workspace: str, role_id: int) -> list[RolePermission]:
    own = [held.grant for held in grants if held.workspace == workspace]
    return [RolePermission(role_id, grant) for grant in own]


def _default_first(workspace: str) -> tuple[bool, str]:
    return workspace != DEFAULT_WORKSPACE, workspace
