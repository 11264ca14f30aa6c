"""``python -m local.admin rights``: prints the grants and roles of a user; or what a user, or every
user, may do with a resource, with the reasons."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from mlcore import errors
from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH
from mlcore.entities.users import Profile, User
from mlcore.policies.access import DEFAULT_PERMISSION, permission_without_grant
from mlcore.repos.users import api_keys, roles, sign_in_accounts, users
from operate.module_loading import CannotRun
from operate.rights.resources import ACTIONS, Resource, resource_named
from operate.rights.verdicts import origins_of, verdicts


def run(given: argparse.Namespace) -> int:
    """Prints the tables that explain the rights of a user, or the rights of users on a resource.
    Returns 0. Raises CannotRun for a missing user or resource."""
    try:
        for line in _lines(given.user, given.on, given.workspace):
            print(line)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    return 0


def _lines(username: str | None, on: str | None, workspace: str) -> Iterator[str]:
    if on is None:
        if username is None:
            raise CannotRun("name a user, or a resource with --on model:NAME, or both")
        yield from _of_user(users.get_profile(username))
        return
    resource = resource_named(on, workspace)
    profiles = users.find_all() if username is None else [users.get_profile(username)]
    yield from table_lines(
        (
            f"{resource.name.upper()}",
            *(action.upper() for action in ACTIONS if action in resource.policies),
            "BECAUSE",
        ),
        [row for profile in profiles for row in _on_resource(profile, resource, workspace)],
    )
    level = permission_without_grant(workspace).name
    yield f"Without a grant: {level} ({DEFAULT_PERMISSION} of this command's environment)."


def _on_resource(profile: Profile, resource: Resource, workspace: str) -> Iterator[Sequence[str]]:
    """Yields a row of the table for each reason: the user, yes or no for each action to which the
    reason applies, and the reason."""
    explained = verdicts(profile, roles.of_profile(profile), resource, workspace)
    for reason in dict.fromkeys(verdict.reason for verdict in explained.values()):
        decided = [
            ("yes" if explained[action].may else "no") if explained[action].reason == reason else ""
            for action in resource.policies
        ]
        yield (profile.user.username, *decided, reason)


def _of_user(profile: Profile) -> Iterator[str]:
    user, assigned = profile.user, roles.of_profile(profile)
    signs_in = sign_in_accounts.find(user)
    yield f"user {user.username}, number {user.user_id}"
    yield f"login: {_login(user, '' if signs_in is None else signs_in.account.issuer)}"
    yield f"administrator: {'yes' if user.is_admin else 'no, unless by a group of the issuer'}"
    by_group = frozenset() if signs_in is None else signs_in.role_ids
    yield from table_lines(
        ("WORKSPACE", "ROLE", "ASSIGNED"),
        [
            (role.workspace, role.name, _assigned(role.role_id, profile, by_group))
            for role in assigned
        ],
    )
    yield from table_lines(
        ("WORKSPACE", "LEVEL", "TYPE", "RESOURCE", "THROUGH"),
        [
            (origin.workspace, origin.grant[2], origin.grant[0], origin.grant[1], origin.source)
            for origin in origins_of(profile, assigned)
        ],
    )
    yield from table_lines(
        ("API KEY", "NAME", "WORKSPACE", "SCOPES"),
        [
            (
                key.key_id,
                key.name,
                key.workspace,
                "all that the owner may" if key.scopes is None else ", ".join(key.scopes),
            )
            for key in api_keys.find_all(user)
        ],
    )


def _assigned(role_id: int, profile: Profile, by_claims: frozenset[int]) -> str:
    """Returns how a user got a role: by hand, by a sign-in, or by a provisioned group."""
    if role_id not in profile.role_ids:
        return "by a provisioned group"
    return "by a group" if role_id in by_claims else "by hand"


def _login(user: User, issuer: str) -> str:
    if user.password_hash == SERVICE_ACCOUNT_HASH:
        return "API keys only (a service account)"
    if issuer:
        return f"signs in at {issuer}"
    return "password" if user.password_hash else "no password"


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a table as lines with aligned columns; nothing without rows. Line breaks and other
    control characters in names are shown as escapes, so that a name cannot forge a row."""
    if not rows:
        return
    cells = [[_printable(text) for text in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    yield ""
    for row in cells:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
