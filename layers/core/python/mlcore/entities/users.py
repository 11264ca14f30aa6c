"""Users, their grants and roles."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.auth.permissions import Grant


class User(NamedTuple):
    user_id: int
    username: str
    password_hash: str
    """Empty when somebody else vouches for the user."""
    is_admin: bool
    role_ids: dict[str, int]
    """By workspace, the number that stands for the user's own grants there."""


class HeldGrant(NamedTuple):
    """A grant of a user's own."""

    workspace: str
    grant: Grant


class Profile(NamedTuple):
    """All that a user's partition holds."""

    user: User
    grants: tuple[HeldGrant, ...]
    role_ids: tuple[int, ...]
    """The roles that the user was assigned."""


class RolePermission(NamedTuple):
    permission_id: int
    grant: Grant


class Role(NamedTuple):
    role_id: int
    name: str
    workspace: str
    description: str | None
    permissions: tuple[RolePermission, ...]


class Assignment(NamedTuple):
    assignment_id: int
    user_id: int
    role_id: int
