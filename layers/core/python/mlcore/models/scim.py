"""Declares the items of what a directory provisions over SCIM."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import FlagAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class ScimUser(Item):
    """A directory's data about a user. ``attributes`` is a JSON object of SCIM attributes;
    ``version`` counts writes; ``user_id`` distinguishes the user from a former one of the same
    name. Times are in milliseconds since the epoch."""

    pattern = keys.SCIM_USER

    version = IntAttribute()
    username = TextAttribute()
    user_id = IntAttribute()
    external_id = TextAttribute(null=True)
    attributes = TextAttribute()
    created_at = IntAttribute()


class ScimName(Item):
    """Reserves a name for the user or group ``scim_id`` in every spelling. With ``is_deleted`` the
    user was deleted by the directory; until the TTL no login creates a user of that name."""

    pattern = keys.SCIM_NAME

    scim_id = TextAttribute()
    is_deleted = FlagAttribute(null=True)


class ScimValue(Item):
    """Lists a user or group by the value of an attribute."""

    pattern = keys.SCIM_VALUE

    scim_id = TextAttribute()


class ScimGroup(Item):
    """A group of the directory. ``role_ids`` is a JSON list of the roles that its members have by
    the setting ``sign_in_roles``; ``version`` counts writes, those of members included. Times are
    in milliseconds since the epoch."""

    pattern = keys.SCIM_GROUP

    version = IntAttribute()
    group_id = TextAttribute()
    display_name = TextAttribute()
    external_id = TextAttribute(null=True)
    role_ids = TextAttribute()
    created_at = IntAttribute()


class ScimMember(Item):
    """Lists a user among the members of a group."""

    pattern = keys.SCIM_MEMBER

    scim_id = TextAttribute()


class ScimMembership(Item):
    """Lists a group among those of a user; in the user's partition. ``user_id`` distinguishes the
    user from a former one of the same name."""

    pattern = keys.SCIM_MEMBERSHIP

    group_id = TextAttribute()
    user_id = IntAttribute()
