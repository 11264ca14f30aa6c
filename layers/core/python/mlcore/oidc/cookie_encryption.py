"""Encrypts ("seals") short texts for cookies with AES-256-GCM: without the key they can neither be
read nor changed.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAXIMUM_LENGTH: Final = 4_096
"""Characters of the longest sealed text that is opened; browsers keep no longer cookies."""

_NONCE_BYTES: Final = 12


def seal(text: str, key: bytes, purpose: str) -> str:
    """Encrypts a text. Returns it in characters that a cookie may have.

    Args:
        purpose: a text that :func:`open_sealed` must be given again, so that what was sealed for
            one cookie is worthless in another.
    """
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + AESGCM(key).encrypt(nonce, text.encode(), purpose.encode())
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def open_sealed(sealed: str, key: bytes, purpose: str) -> str | None:
    """Decrypts a text of :func:`seal`; None if it was not sealed with this key for this purpose."""
    if len(sealed) > MAXIMUM_LENGTH:
        return None
    try:
        raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        return (
            AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], purpose.encode()).decode()
        )
    except (InvalidTag, binascii.Error, ValueError):
        return None
