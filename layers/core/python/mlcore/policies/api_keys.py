"""Permission checks for requests about API keys and service accounts. A caller who logged in by a
key may not manage keys, so that a stolen key ends when it expires or is revoked.
"""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access
from mlcore.repos.users import api_keys
from mlcore.wire.untyped_message import text


def manage_of_user(access: Access, message: Any) -> bool:
    """Allows users to make API keys for themselves, unless they logged in by an API key.
    Administrators need no policy; the route's function lets them make keys for themselves and for
    service accounts only."""
    return not access.key_id and _is_own(access, message)


def view_of_user(access: Access, message: Any) -> bool:
    return not access.key_id and _is_own(access, message)


def manage_key(access: Access, message: Any) -> bool:
    """Allows users to change and revoke their own API keys, but not by a request that is signed in
    by an API key. The id of a key names its owner, so the answer about another user's key is the
    same whether or not the key exists."""
    owner = api_keys.owner_of(text(message, "key_id"))
    return not access.key_id and owner is not None and owner == access.profile().user.user_id


def create_service_account(access: Access, message: Any) -> bool:
    """Refuses everybody: administrators are let through before a policy is called."""
    return False


def _is_own(access: Access, message: Any) -> bool:
    return not message.has("username") or text(message, "username") == access.username
