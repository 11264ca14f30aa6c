"""``python -m local.admin create-admin``: creates the first administrator, or resets an
administrator's password."""

from __future__ import annotations

import getpass
import sys
from importlib import import_module

from operate.module_loading import CannotRun, load_modules


def create_admin(name: str, *, replace: bool) -> int:
    """Creates an administrator with a password. With ``replace`` an existing user of this name gets
    a new password and becomes an administrator. Reads the password from the terminal or standard
    input, so that it appears in no template, log, argument or environment variable. Returns 0.
    Raises CannotRun if the user exists and ``replace`` is False, or if the password is too short or
    its repetition differs."""
    load_modules()
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


def create_admin_of_issuer(name: str, *, replace: bool) -> int:
    """Creates an administrator who signs in at the OpenID Connect issuer and has no password. The
    name belongs to the issuer's account that signs in with it first. With ``replace`` an existing
    user of this name becomes an administrator. Returns 0. Raises CannotRun if the user exists and
    ``replace`` is False, or if the write is refused or fails."""
    load_modules()
    users = import_module("mlcore.repos.users.users")
    errors = import_module("mlcore.errors")
    try:
        if users.find(name) is None:
            users.create(name, "", is_admin=True)
        elif replace:
            users.update(name, is_admin=True)
        else:
            raise CannotRun(f"there is a user {name}; --replace makes them an administrator")
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
