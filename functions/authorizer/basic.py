"""HTTP Basic authentication against the hashes in the table, with a bound on wrong passwords.

Each call reads the user, so a changed password and a deleted user count at once. What is
remembered is only that a password fits a hash and came from an address, under a key that dies with
the process: whoever is logged in stays so while somebody else at the address guesses, and nobody
elsewhere can find out by it what the password is.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import os
from typing import Final

from mlcore.auth.passwords import NOBODY, check_password
from mlcore.entities.users import User
from mlcore.memory import Memory
from mlcore.repos.users import logins

_fitting: Final[Memory[bytes, bool]] = Memory("password that fits")


def authenticate(authorization: str, address: str) -> User | None:
    """The user whom an Authorization header proves, else None.

    A name that nobody has, and a user without a password, take as long as a wrong password.

    Args:
        address: of the caller; wrong passwords are counted by it and the name, so that guessing
            does not lock the user out elsewhere.
    """
    credentials = _credentials(authorization)
    if credentials is None:
        return None
    username, password = credentials
    user, failures = logins.find(username, address)
    hashed = (user.password_hash if user is not None else "") or NOBODY
    told = f"{logins.network(address)}\0{hashed}\0{password}"
    proof = hmac.digest(_secret(), told.encode(), hashlib.sha256)
    if proof in _fitting:
        return user
    if failures >= logins.MAXIMUM_FAILURES:
        return None
    fits = check_password(password, hashed)
    if not fits or user is None or not user.password_hash:
        logins.failed(username, address)
        return None
    _fitting.put(proof, True)
    return user


@functools.cache
def _secret() -> bytes:
    """Made by the first call: what is made at import is the same in all processes that start from
    one snapshot."""
    return os.urandom(32)


def _credentials(authorization: str) -> tuple[str, str] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    username, colon, password = text.partition(":")
    if not (colon and username and password):
        return None
    return username, password
