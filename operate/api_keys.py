"""``python -m local.admin keys``: creates, lists and revokes API keys, also of service accounts.
Anybody who can write to the table can do this."""

from __future__ import annotations

import argparse
import datetime
from importlib import import_module
from typing import Any

from operate.module_loading import CannotRun, load_modules

ACTIONS = ("create", "list", "revoke", "create-account")


def run(given: argparse.Namespace) -> int:
    """Creates, lists or revokes API keys, or creates a service account, as the arguments of the
    command line say (``given``). Returns 0. A new key's token is printed once, on a line of its
    own. Raises CannotRun if the product refuses the action."""
    load_modules()
    errors = import_module("mlcore.errors")
    try:
        return _run(given)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error


def _run(given: argparse.Namespace) -> int:
    api_keys, users = (
        import_module("mlcore.repos.users.api_keys"),
        import_module("mlcore.repos.users.users"),
    )
    if given.action == "create-account":
        unmatchable = import_module("mlcore.auth.passwords").SERVICE_ACCOUNT_HASH
        try:
            users.create(given.subject, unmatchable, is_admin=False)
        except users.UserExists as error:
            raise CannotRun(f"there is a user {given.subject}") from error
        print(f"{given.subject} is a service account")
    elif given.action == "create":
        _create(given, api_keys, users)
    elif given.action == "list":
        for key in api_keys.find_all(users.get(given.subject)):
            print(_line(key))
    else:
        if api_keys.find(given.subject) is None:
            raise CannotRun(f"there is no key {given.subject}")
        api_keys.delete(given.subject)
        print(f"{given.subject} is revoked")
    return 0


def _create(given: argparse.Namespace, api_keys: Any, users: Any) -> None:
    scopes = None
    if given.scope:
        scopes = import_module("mlcore.auth.api_key_scopes").checked(given.scope)
    expires_at = None
    if given.days is not None:
        if given.days < 1:
            raise CannotRun("--days takes a whole number from 1")
        expires_at = import_module("mlcore.ids").now_ms() + given.days * 86_400_000
    made = api_keys.create(
        users.get(given.subject), given.name, given.workspace, scopes, expires_at
    )
    print(made.token)


def _line(key: Any) -> str:
    used = "never" if key.used_on is None else _day(key.used_on * 86_400_000)
    ends = "never" if key.expires_at is None else _day(key.expires_at)
    scopes = "all" if key.scopes is None else ",".join(key.scopes)
    return f"{key.key_id} {key.name!r} scopes={scopes} expires={ends} used={used}"


def _day(milliseconds: int) -> str:
    return datetime.datetime.fromtimestamp(milliseconds / 1_000, datetime.UTC).date().isoformat()
