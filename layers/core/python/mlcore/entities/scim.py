"""Users and groups as a company's directory (Entra ID, Okta, …) provisions them over
SCIM."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.entities.users import User

USER: Final = "user"
GROUP: Final = "group"

_ID: Final = re.compile(r"(?P<number>[1-9][0-9]{0,15})\.(?P<name>[\w-]{1,1400})", re.A)


class ScimUser(NamedTuple):
    """A user with the attributes that a company's directory has provisioned over SCIM."""

    user: User
    external_id: str | None
    """The directory's own id of the user."""
    attributes: Mapping[str, Any]
    """Attributes with the names and shapes of SCIM: displayName, name, emails."""
    version: int
    """Counts the directory's writes; 0 for a user about whom no directory has written."""
    created_at: int | None
    """When a directory first wrote about the user; in milliseconds since the epoch."""
    updated_at: int | None

    @property
    def scim_id(self) -> str:
        return scim_id_of(self.user.user_id, self.user.username)


class ScimGroup(NamedTuple):
    """A group of the directory, without its members. Times are in milliseconds since the epoch."""

    group_id: str
    display_name: str
    external_id: str | None
    """The directory's own id of the group."""
    role_ids: tuple[int, ...]
    """The roles that members have."""
    version: int
    created_at: int
    updated_at: int


def scim_id_of(user_id: int, username: str) -> str:
    """Returns the SCIM id of a user, such as ``7.YWRh``: the user's number and name. So an id finds
    its user without an index, and a later user of the same name has another id."""
    name = base64.urlsafe_b64encode(username.encode()).rstrip(b"=").decode()
    return f"{user_id}.{name}"


def parse_scim_id(scim_id: str) -> tuple[int, str] | None:
    """Returns the number and name of the user with a SCIM id; None for a text that is not exactly
    an id of :func:`scim_id_of`."""
    match = _ID.fullmatch(scim_id)
    if match is None:
        return None
    encoded = match["name"]
    try:
        name = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    number = int(match["number"])
    return (number, name) if scim_id_of(number, name) == scim_id else None
