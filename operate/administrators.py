"""``python -m local.admin create-admin``: makes the first administrator, or lets one in again."""

from __future__ import annotations

import getpass
import sys
from importlib import import_module

from operate.modules import CannotRun, modules


def create_admin(name: str, *, replace: bool) -> int:
    """The password never stands in a template, a log, an argument or an environment."""
    modules()
    passwords, users = (
        import_module("mlcore.auth.passwords"),
        import_module("mlcore.repos.users.users"),
    )
    errors = import_module("mlcore.errors")
    minimum = import_module("users.service").MINIMUM_PASSWORD_LENGTH
    try:
        known = users.find(name)
        if known is not None and not replace:
            raise CannotRun(f"there is a user {name}; --replace gives them a new password")
        password = _password(name)
        if len(password) < minimum:
            raise CannotRun(f"a password has at least {minimum} characters")
        hashed = passwords.hash_password(password)
        if known is None:
            users.create(name, hashed, is_admin=True)
        else:
            users.update(name, password_hash=hashed, is_admin=True)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    print(f"{name} is an administrator")
    return 0


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if password != getpass.getpass("Again: "):
        raise CannotRun("the passwords differ")
    return password
