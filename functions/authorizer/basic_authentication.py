"""HTTP Basic authentication against the password hashes in the table, with a limit on wrong
passwords.

Each call reads the user, so a changed password or a deleted user takes effect at once. The process
caches only that a password matched a hash from an address, under a keyed digest whose key dies with
the process. So a user whom the process has verified is not locked out while somebody else guesses
at the same address, and the cache reveals no password.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import os
from typing import Final

from mlcore.auth.passwords import UNMATCHABLE_HASH, check_password
from mlcore.entities.users import User
from mlcore.process_cache import ProcessCache
from mlcore.repos.users import wrong_passwords

_verified: Final[ProcessCache[bytes, bool]] = ProcessCache("password that fits")


def authenticate(authorization: str, address: str) -> User | None:
    """Returns the user whose name and password an Authorization header has, or None.

    An unknown name and a user without a password take as long as a wrong password.

    Args:
        address: the caller's address. Wrong passwords are counted per address (of IPv6, per
            network) and hash of the name, so that guessing does not lock the user out elsewhere.
    """
    sent = credentials(authorization)
    if sent is None:
        return None
    username, password = sent
    user, failures = wrong_passwords.find(username, address)
    hashed = (user.password_hash if user is not None else "") or UNMATCHABLE_HASH
    content = f"{wrong_passwords.network(address)}\0{hashed}\0{password}"
    proof = hmac.digest(_secret(), content.encode(), hashlib.sha256)
    if proof in _verified:
        return user
    if failures >= wrong_passwords.MAXIMUM_FAILURES:
        return None
    is_correct = check_password(password, hashed)
    if not is_correct or user is None or not user.password_hash:
        wrong_passwords.failed(username, address)
        return None
    _verified.put(proof, True)
    return user


@functools.cache
def _secret() -> bytes:
    """Returns the process's key. It is created by the first call and not at import: processes that
    start from one Lambda snapshot would share it."""
    return os.urandom(32)


def credentials(authorization: str) -> tuple[str, str] | None:
    """Returns the username and password in an Authorization header of scheme Basic; None for any
    other header, a malformed one, or an empty username or password."""
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
