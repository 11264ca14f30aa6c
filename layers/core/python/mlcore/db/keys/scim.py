"""Primary keys of the items with what a company's directory (such as Okta) sends over SCIM:
attributes of users, and groups."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_USER = "USER#<username>"

SCIM_USER = Pattern("scim_user", _USER, "U#SCIM", "a directory's attributes of a user")
SCIM_NAME = Pattern(
    "scim_name",
    "SCIMNAME#<scim_kind>#<lower_name>",
    "SCIMNAME",
    "makes names of a directory's users and groups unique in any spelling",
)
SCIM_VALUE = Pattern(
    "scim_value",
    "SCIMVALUE#<scim_kind>#<attribute>#<text>",
    "SCIMVALUE#<scim_id>",
    "finds a directory's users and groups by an external id or an e-mail address",
)

SCIM_GROUP = Pattern(
    "scim_group", "SCIMGROUPS", "SCIMGROUP#<group_id>", "a directory's group with its roles"
)
SCIM_MEMBER = Pattern(
    "scim_member",
    "SCIMMEMBERS#<group_id>",
    "SCIMMEMBER#<scim_id>",
    "a group of the directory has a member",
)
SCIM_MEMBERSHIP = Pattern(
    "scim_membership",
    _USER,
    "U#SCIMGROUP#<group_id>",
    "a user is a member of a group of the directory",
)

SCIM_PATTERNS = (SCIM_USER, SCIM_NAME, SCIM_VALUE, SCIM_GROUP, SCIM_MEMBER, SCIM_MEMBERSHIP)


def scim_user(username: str) -> Key:
    return Key(SCIM_USER.pk.build(username), SCIM_USER.sk.text)


def scim_name(kind: str, lower_name: str) -> Key:
    return Key(SCIM_NAME.pk.build(kind, lower_name), SCIM_NAME.sk.text)


def scim_value(kind: str, attribute: str, text: str, scim_id: str) -> Key:
    return Key(SCIM_VALUE.pk.build(kind, attribute, text), SCIM_VALUE.sk.build(scim_id))


def scim_group(group_id: str) -> Key:
    return Key(SCIM_GROUP.pk.text, SCIM_GROUP.sk.build(group_id))


def scim_member(group_id: str, scim_id: str) -> Key:
    return Key(SCIM_MEMBER.pk.build(group_id), SCIM_MEMBER.sk.build(scim_id))


def scim_membership(username: str, group_id: str) -> Key:
    return Key(SCIM_MEMBERSHIP.pk.build(username), SCIM_MEMBERSHIP.sk.build(group_id))


def scim_membership_prefix() -> str:
    return SCIM_MEMBERSHIP.sk.prefix()
