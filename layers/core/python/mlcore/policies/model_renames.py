"""Checks names of models and prompts against the grants that name them.

Grants name a model by its name. A rename moves the grants of single users, but not those of roles,
so it could lift a DENY or give a role permissions that it was never granted.
"""

from __future__ import annotations

from mlcore.auth.permissions import ANY, PROMPT, REGISTERED_MODEL
from mlcore.errors import InvalidParameterValue
from mlcore.policies.access import Access, reserved_name
from mlcore.repos.registry import registered_models
from mlcore.repos.users import grants, roles, users

_TYPES = (REGISTERED_MODEL, PROMPT)


def check_rename(access: Access, name: str, new_name: str) -> None:
    """Checks that renaming a registered model or prompt changes nobody's rights. Raises
    InvalidParameterValue if roles have grants on either name, if users have grants on the new one,
    or if the new name is ``*``. The error names the grants to callers who administer the workspace.

    A grant that is made while the rename runs is not seen.
    """
    if new_name == ANY:
        raise reserved_name()
    shown = access.administrates(access.workspace)
    of_roles = [
        f"role '{role.name}' has {grant.permission} on {grant.resource_type} "
        f"'{grant.resource_pattern}'"
        for role in roles.find_all()
        if role.workspace == access.workspace
        for grant in (held.grant for held in role.permissions)
        if grant.resource_type in _TYPES and grant.resource_pattern in (name, new_name)
    ]
    if of_roles:
        raise InvalidParameterValue(
            f"Cannot rename '{name}' to '{new_name}' because role grants reference these names by "
            f"exact name{_listed(of_roles, shown)}. Renaming would change which model or prompt "
            "those grants apply to. An admin must update or remove these role grants before the "
            "rename."
        )
    if not new_name.strip() or new_name == name:
        return
    if registered_models.find(access.workspace, new_name) is not None:
        return  # the registry refuses it
    of_users = _grants_of_users(access.workspace, new_name)
    if of_users:
        raise InvalidParameterValue(
            f"Cannot rename '{name}' to '{new_name}' because users already have permissions on "
            f"'{new_name}'{_listed(of_users, shown)}. They would start applying to the renamed "
            "model or prompt. An admin must remove these permissions before the rename."
        )


def _grants_of_users(workspace: str, name: str) -> list[str]:
    described = []
    for resource_type in _TYPES:
        for username in grants.holders(workspace, resource_type, name):
            user = users.find(username)
            grant = None if user is None else grants.find(user, workspace, resource_type, name)
            if grant is not None:
                described.append(
                    f"user '{username}' has {grant.permission} on {resource_type} '{name}'"
                )
    return described


def _listed(described: list[str], shown: bool) -> str:
    return f" ({', '.join(described)})" if shown else ""
