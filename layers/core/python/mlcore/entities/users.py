"""The entities of users, their grants and roles."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.auth.permissions import Grant


class User(NamedTuple):
    user_id: int
    username: str
    password_hash: str
    """Empty for a user without a password, who logs in through an identity provider; a fixed mark
    (:data:`mlcore.auth.passwords.SERVICE_ACCOUNT_HASH`) for a service account."""
    is_admin: bool
    role_ids: dict[str, int]
    """By workspace, the id of the role under which the user's own grants are shown."""
    is_active: bool = True
    """Whether the user's logins are accepted. A directory deactivates people who leave."""


class ApiKey(NamedTuple):
    """An API key of a user, without its secret. Times are in milliseconds since the epoch."""

    key_id: str
    name: str
    user_id: int
    username: str
    workspace: str
    """The workspace in which a key with scopes may be used."""
    scopes: tuple[str, ...] | None
    """None for all that its owner may do."""
    created_at: int
    expires_at: int | None
    used_on: int | None
    """The last day of use, in days since the epoch."""


class HeldGrant(NamedTuple):
    """A grant that a user has in a workspace directly, not through a role."""

    workspace: str
    grant: Grant


class Profile(NamedTuple):
    """A user with the user's own grants and the ids of the assigned roles."""

    user: User
    grants: tuple[HeldGrant, ...]
    role_ids: tuple[int, ...]
    """The ids of the assigned roles."""
    group_ids: tuple[str, ...] = ()
    """The ids of the groups of the directory of which the user is a member; they give roles."""


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


class Account(NamedTuple):
    """The account of an OpenID Connect issuer with which a user signs in."""

    issuer: str
    subject: str


class SignIn(NamedTuple):
    """The account at an identity provider with which a user signs in, and the ids of the roles that
    the account's groups gave."""

    account: Account
    role_ids: frozenset[int]


class Session(NamedTuple):
    """A session of a browser in which a user is signed in. Times are in seconds since the epoch."""

    session_id: str
    """The secret that the browser's cookie holds; the table has only its hash."""
    username: str
    user_id: int
    issuer: str
    is_admin: bool
    """Whether the account's groups make the user an administrator during this session."""
    started_at: int
    seen_at: int
    expires_at: int
    """The end of the session, however often it is used."""
    hint: str = ""
    """The sealed token that names the session to the issuer at logout; empty for none."""
