"""API keys in calls of the AI gateway: the SDKs of Anthropic and Google send a key in a header of
their own.

Such a header may also hold the caller's key at the provider, or any text, because the gateway does
not need one. So it is a login only if it holds an API key of this server. A request in which two
different logins meet is refused: which of them counts would depend on who reads the headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from authorizer import key_authentication
from mlcore.auth.api_key_tokens import KEY_HEADERS, keys_in
from mlcore.environment import GATEWAY_LOGIN
from mlcore.repos.users import api_keys

_AUTHORIZATION: Final = "authorization"


class TwoLogins(Exception):
    """Raised for a request with two different logins for this server."""


def key_in(headers: Mapping[str, str], login: str) -> tuple[str, str] | None:
    """Returns the username ("" if none is sent) and the API key of this server with which a call of
    the AI gateway logs in; None if the call has no such key.

    Args:
        headers: with names in lower case.
        login: the login in the header ``Authorization``, or in the gateway's own header for logins
            if the call has it; empty if neither header has a login.

    Raises:
        TwoLogins: the call also has another login, another key of this server, or, if the key is
            only in a provider's header, any other credential in such a header.
    """
    beside = (_AUTHORIZATION, *KEY_HEADERS) if headers.get(GATEWAY_LOGIN) else KEY_HEADERS
    keys = frozenset().union(*(keys_in(headers.get(name, "")) for name in beside))
    named = key_authentication.token_in(login)
    if not keys:
        return named
    if login:
        if named is None or keys != {named[1]}:
            raise TwoLogins
        return named
    values = {value for name in KEY_HEADERS if (value := headers.get(name, "").strip())}
    if len(keys | values) > 1:
        raise TwoLogins
    (value,) = values
    return ("", value) if api_keys.is_token(value) else None
