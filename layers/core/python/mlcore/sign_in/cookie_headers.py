"""Names of the cookies of sign-in, and the Set-Cookie headers that set and remove them.

Where the product is served over HTTPS, their names begin with ``__Host-``: browsers then take them
only from this host itself, over HTTPS, for all paths.
"""

from __future__ import annotations

from typing import Final

SESSION: Final = "mlflow-session"
SIGN_IN: Final = "mlflow-sign-in"
"""Name of the cookie that exists between the redirect to the issuer and the return from it."""

SECURE_PREFIX: Final = "__Host-"


def cookie_name(cookie: str, *, is_secure: bool) -> str:
    """Returns the full name of a cookie: with the prefix ``__Host-`` where the product is served
    over HTTPS (``is_secure``)."""
    return f"{SECURE_PREFIX}{cookie}" if is_secure else cookie


def set_cookie(name: str, value: str, seconds: int) -> str:
    """Returns the Set-Cookie header for a cookie. It is ``SameSite=Lax``, because the return from
    the issuer is a request that another site began."""
    secure = "; Secure" if name.startswith(SECURE_PREFIX) else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def remove_cookie(name: str) -> str:
    """Returns the Set-Cookie header that removes a cookie."""
    return set_cookie(name, "", 0)
