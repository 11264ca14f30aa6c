"""The JSON of users, roles and grants. It never contains password hashes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, SCORER, scorer_of
from mlcore.entities.users import ApiKey, Assignment, HeldGrant, Profile, Role, RolePermission, User
from mlcore.entities.workspaces import DEFAULT_WORKSPACE


def user(entity: User) -> dict[str, Any]:
    return {"id": entity.user_id, "username": entity.username, "is_admin": entity.is_admin}


def profile(entity: Profile) -> dict[str, Any]:
    """Returns the JSON of a user, with the lists of permissions that MLflow clients from before the
    introduction of roles expect. Clients 3.5 to 3.7 fail without the list of scorer permissions;
    earlier ones ignore it."""
    return {
        **user(entity.user),
        "experiment_permissions": [
            experiment_permission(entity.user, grant)
            for grant in entity.grants
            if grant.grant.resource_type == EXPERIMENT
        ],
        "registered_model_permissions": [
            model_permission(entity.user, grant)
            for grant in entity.grants
            if grant.grant.resource_type == REGISTERED_MODEL
        ],
        "scorer_permissions": [
            scorer_permission(entity.user, grant)
            for grant in entity.grants
            if grant.grant.resource_type == SCORER and grant.grant.resource_pattern != ANY
        ],
    }


def api_key(entity: ApiKey) -> dict[str, Any]:
    """Returns the JSON of an API key, without its secret. ``last_used_at`` is the beginning of the
    day on which the key was last used, in ms since the epoch."""
    return {
        "key_id": entity.key_id,
        "name": entity.name,
        "username": entity.username,
        "workspace": entity.workspace,
        "scopes": None if entity.scopes is None else list(entity.scopes),
        "created_at": entity.created_at,
        "expires_at": entity.expires_at,
        "last_used_at": None if entity.used_on is None else entity.used_on * 86_400_000,
    }


def experiment_permission(owner: User, grant: HeldGrant) -> dict[str, Any]:
    return {
        "experiment_id": grant.grant.resource_pattern,
        "user_id": owner.user_id,
        "permission": grant.grant.permission,
    }


def model_permission(owner: User, grant: HeldGrant) -> dict[str, Any]:
    return {
        "workspace": grant.workspace,
        "name": grant.grant.resource_pattern,
        "user_id": owner.user_id,
        "permission": grant.grant.permission,
    }


def scorer_permission(owner: User, grant: HeldGrant) -> dict[str, Any]:
    experiment_id, name = scorer_of(grant.grant.resource_pattern)
    return {
        "experiment_id": experiment_id,
        "scorer_name": name,
        "user_id": owner.user_id,
        "permission": grant.grant.permission,
    }


def role(entity: Role) -> dict[str, Any]:
    return {
        "id": entity.role_id,
        "name": entity.name,
        "workspace": entity.workspace,
        "description": entity.description,
        "permissions": [role_permission(grant, entity.role_id) for grant in entity.permissions],
    }


def role_permission(grant: RolePermission, role_id: int) -> dict[str, Any]:
    return {
        "id": grant.permission_id,
        "role_id": role_id,
        "resource_type": grant.grant.resource_type,
        "resource_pattern": grant.grant.resource_pattern,
        "permission": grant.grant.permission,
    }


def assignment(entity: Assignment) -> dict[str, Any]:
    return {"id": entity.assignment_id, "user_id": entity.user_id, "role_id": entity.role_id}


def own_roles(owner: Profile) -> list[Role]:
    """Returns a user's own grants as MLflow shows them: for each workspace a role that belongs to
    the user alone, and remains when its last grant is removed."""
    grant_workspaces = {grant.workspace for grant in owner.grants}
    workspaces = sorted(grant_workspaces | set(owner.user.role_ids), key=_default_first)
    return [
        Role(
            role_id := owner.user.role_ids.get(workspace, 0),
            f"__user_{owner.user.user_id}__",
            workspace,
            None,
            tuple(_role_permissions(owner.grants, workspace, role_id)),
        )
        for workspace in workspaces
    ]


def _role_permissions(
    grants: Iterable[HeldGrant], workspace: str, role_id: int
) -> list[RolePermission]:
    own_grants = [held.grant for held in grants if held.workspace == workspace]
    return [RolePermission(role_id, grant) for grant in own_grants]


def _default_first(workspace: str) -> tuple[bool, str]:
    return workspace != DEFAULT_WORKSPACE, workspace
