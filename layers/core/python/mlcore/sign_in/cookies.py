"""The contents of the cookies of sign-in. Each is encrypted ("sealed"): a browser can neither read
nor change it.

The name is sealed with the content, so the value of one cookie is not accepted under another name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from mlcore.repos.users import session_keys

MAXIMUM_COOKIE: Final = 4_000
"""Characters of a cookie that browsers keep."""


def seal(content: Any, name: str) -> str:
    """Returns the value of a cookie: a JSON value, encrypted with the current session key.

    Args:
        name: the cookie's full name.
    """
    from mlcore.oidc import cookie_encryption  # noqa: PLC0415 -- its library is in a layer of its own

    key = session_keys.current()
    return f"{key.key_id}.{cookie_encryption.seal(json.dumps(content), key.key, name)}"


def open_sealed(value: str, name: str) -> Any:
    """Decrypts the value of a cookie and returns its JSON value; None if it was not sealed here
    under this name."""
    from mlcore.oidc import cookie_encryption  # noqa: PLC0415 -- as above

    key_id, _, sealed = value.partition(".")
    if not sealed or len(value) > cookie_encryption.MAXIMUM_LENGTH:
        return None
    key = session_keys.find(key_id)
    text = None if key is None else cookie_encryption.open_sealed(sealed, key.key, name)
    return None if text is None else json.loads(text)


def open_only(values: Sequence[str], name: str) -> Any:
    """Decrypts the only cookie of a name and returns its JSON value; None without a valid one. A
    browser that has several cookies of the name is not trusted: one of them was planted."""
    return open_sealed(values[0], name) if len(values) == 1 else None
