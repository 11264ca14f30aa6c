"""Password hashes by scrypt with a salt, compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Final

_N: Final = 2**14
_R: Final = 8
_P: Final = 1
"""With these parameters an attempt takes 16 MiB and about 40 ms. OWASP recommends more memory,
which the function would need for each attempt; instead the number of attempts is limited."""

_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32


def hash_password(password: str) -> str:
    """Returns ``scrypt$n$r$p$salt$hash``, with salt and hash in Base64."""
    salt = os.urandom(_SALT_BYTES)
    return "$".join(
        (
            "scrypt",
            str(_N),
            str(_R),
            str(_P),
            _base64(salt),
            _base64(_derive(password, salt, _N, _R, _P)),
        )
    )


def check_password(password: str, hashed: str) -> bool:
    """Whether the password has this hash."""
    _, n, r, p, salt, expected = hashed.split("$")
    derived = _derive(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(derived, base64.b64decode(expected))


UNMATCHABLE_HASH: Final = "$".join(
    (
        "scrypt",
        str(_N),
        str(_R),
        str(_P),
        _S := "AAAAAAAAAAAAAAAAAAAAAA==",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    )
)
"""A hash that no password has. Checking against it for an unknown user takes as long as for a known
one."""


SERVICE_ACCOUNT_HASH: Final = UNMATCHABLE_HASH.replace("AAAAAAAA", "SERVICEA", 1)
"""The hash of a service account, which logs in by API keys only. No password has it."""


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=n, r=r, p=p, dklen=_HASH_BYTES, maxmem=2**26
    )


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
