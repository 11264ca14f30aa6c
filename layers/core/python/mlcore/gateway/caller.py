"""Who calls a model through the gateway: a user, with an API key or another login, or the server
itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

_CALLER_HEADER: Final = "x-mlflow-gateway-caller"
JUDGE: Final = "judge"
"""Value of that header for calls of judges, in MLflow's clients and in this server."""


class Caller(NamedTuple):
    """Who makes a gateway call: the user, the API key, and the request's headers with names in
    lower case."""

    username: str | None = None
    headers: Mapping[str, str] = {}
    key_id: str | None = None
    """The id of the API key by which the user logged in; None for another login."""
    is_internal: bool = False
    """Whether the server itself calls. Such a call may be part of another one, so it is none of the
    calls that a user may make at the same time."""
    repeats_itself: bool = False
    """Whether the caller repeats calls that a provider refused, so that the gateway must not."""

    @property
    def program(self) -> str | None:
        """The name of the calling program: the header ``x-mlflow-gateway-caller``, or else the
        first word of ``User-Agent``; None if there is none."""
        named = self.headers.get(_CALLER_HEADER)
        return named or self.headers.get("user-agent", "").split("/")[0].strip() or None


def internal_caller(username: str | None, *, judges: bool, repeats_itself: bool = False) -> Caller:
    """Returns the caller of an AI gateway call that the server itself makes.

    Args:
        judges: whether a judge makes it; the call's trace then names the caller ``judge``.
        repeats_itself: whether the code that makes the call repeats it if a provider refuses it,
            so that the gateway must not.
    """
    headers = {_CALLER_HEADER: JUDGE} if judges else {}
    return Caller(username, headers, is_internal=True, repeats_itself=repeats_itself)
