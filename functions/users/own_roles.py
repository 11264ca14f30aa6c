"""Changes of the roles under which MLflow's API shows single users' own grants. Deleting such a
role, or taking it from its user, deletes the grants; a permission added to it becomes a grant.

They belong to one user each: they cannot be renamed, or assigned to others.
"""

from __future__ import annotations

import contextlib
from functools import partial

from mlcore import errors
from mlcore.auth.permissions import Grant
from mlcore.db.table import table
from mlcore.entities.users import Profile, Role, RolePermission
from mlcore.repos.users import grants, users
from mlcore.repos.users.grants import GrantExists, GrantMissing
from mlcore.repos.users.roles import PermissionExists
from users import visible_roles


def delete(role_id: int, username: str | None = None) -> bool:
    """Deletes a role of own grants with its grants. Returns False if there is no such role.

    Args:
        username: only if the role is this user's.
    """
    found = _find(role_id)
    if found is None or username not in {None, found[0].user.username}:
        return False
    owner, role = found
    table.parallel([partial(_revoke, owner, role, held.grant) for held in role.permissions])
    users.forget_own_role(owner.user, role.workspace, role_id)
    return True


def add_permission(role_id: int, grant: Grant) -> RolePermission:
    """Grants a permission to the user of a role of own grants.

    Raises:
        ResourceDoesNotExist: there is no such role.
        PermissionExists: the user has a grant on the resource already.
    """
    found = _find(role_id)
    if found is None:
        raise errors.ResourceDoesNotExist(f"Role with id={role_id} not found")
    owner, role = found
    try:
        grants.create(owner.user, role.workspace, grant)
    except GrantExists as exists:
        raise PermissionExists from exists
    return RolePermission(role_id, grant)


def refuse_if_own(role_id: int) -> None:
    """Raises InvalidParameterValue, which says what to do instead, if this is a role of own grants:
    it cannot be renamed, described or assigned."""
    found = _find(role_id)
    if found is not None:
        raise errors.InvalidParameterValue(
            f"The role with id={role_id} holds the permissions that were granted to the user "
            f"'{found[0].user.username}' alone. It cannot be renamed, described or assigned to "
            "others. Create a role, and assign that."
        )


def _find(role_id: int) -> tuple[Profile, Role] | None:
    # Roles that have no number yet are all shown with 0.
    return visible_roles.owner_of(role_id) if role_id else None


def _revoke(owner: Profile, role: Role, grant: Grant) -> None:
    with contextlib.suppress(GrantMissing):  # revoked meanwhile
        grants.delete(owner.user, role.workspace, grant.resource_type, grant.resource_pattern)
