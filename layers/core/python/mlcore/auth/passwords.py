"""Hashes of passwords: scrypt with its parameters and a salt, compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Final

_N: Final = 2**14
_R: Final = 8
_P: Final = 1
"""16 MiB and about 40 ms a try: OWASP asks for more memory, which every try would take from the
function; the bound on tries makes up for it."""

_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32


def hash_password(password: str) -> str:
    """``scrypt$n$r$p$salt$hash``, salt and hash in Base64."""
    salt = os.urandom(_SALT_BYTES)
    return "$".join(
        (
            "scrypt",
            str(_N),
            str(_R),
            str(_P),
            _text(salt),
            _text(_derive(password, salt, _N, _R, _P)),
        )
    )


def check_password(password: str, hashed: str) -> bool:
    """Whether a password has this hash."""
    _, n, r, p, salt, expected = hashed.split("$")
    derived = _derive(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(derived, base64.b64decode(expected))


NOBODY: Final = "$".join(
    (
        "scrypt",
        str(_N),
        str(_R),
        str(_P),
        _S := "AAAAAAAAAAAAAAAAAAAAAA==",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    )
)
"""A hash that no password has; checking against it takes as long as checking a user's."""


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=n, r=r, p=p, dklen=_HASH_BYTES, maxmem=2**26
    )


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
