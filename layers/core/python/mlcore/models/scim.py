"""Declares the items of the users and groups that a directory provisions over SCIM."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class ScimUser(Item):
    """What an identity directory has sent about a user over SCIM. ``attributes`` is a JSON object
    of SCIM attributes; ``version`` counts writes; ``user_id`` distinguishes the user from a former
    one of the same name. Times are in milliseconds since the epoch."""

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
    """Finds the SCIM user or group ``scim_id`` by the value of an attribute (an external id or an
    e-mail address), which is in the key."""

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
    """Records that a user is a member of a SCIM group; in the partition of the group's members."""

    pattern = keys.SCIM_MEMBER

    scim_id = TextAttribute()


class ScimMembership(Item):
    """Records that a user is a member of a SCIM group; in the user's partition. ``user_id``
    distinguishes the user from a former one of the same name."""

    pattern = keys.SCIM_MEMBERSHIP

    group_id = TextAttribute()
    user_id = IntAttribute()
