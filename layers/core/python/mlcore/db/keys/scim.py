"""Keys of what a company's directory provisions over SCIM: attributes of users, and groups."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_USER = "USER#<username>"

SCIM_USER = Pattern("scim_user", _USER, "U#SCIM", "what a directory says about a user")
SCIM_NAME = Pattern(
    "scim_name",
    "SCIMNAME#<scim_kind>#<lower_name>",
    "SCIMNAME",
    "makes names of a directory's users unique in any spelling",
)
SCIM_VALUE = Pattern(
    "scim_value",
    "SCIMVALUE#<scim_kind>#<attribute>#<text>",
    "SCIMVALUE#<scim_id>",
    "finds a directory's users by an external id or an e-mail address",
)

SCIM_PATTERNS = (SCIM_USER, SCIM_NAME, SCIM_VALUE)


def scim_user(username: str) -> Key:
    return Key(SCIM_USER.pk.build(username), SCIM_USER.sk.text)


def scim_name(kind: str, lower_name: str) -> Key:
    return Key(SCIM_NAME.pk.build(kind, lower_name), SCIM_NAME.sk.text)


def scim_value(kind: str, attribute: str, text: str, scim_id: str) -> Key:
    return Key(SCIM_VALUE.pk.build(kind, attribute, text), SCIM_VALUE.sk.build(scim_id))
