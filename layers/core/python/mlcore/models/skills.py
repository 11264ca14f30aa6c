"""Declares the DynamoDB items of the skill registry."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class Skill(Item):
    """A skill. Four attributes are JSON: ``icons``, ``tags``, ``aliases`` (alias → version), and
    ``states`` (version, if not deleted → [status, type of source, hash of source]). With
    ``is_moved`` the skill is in another workspace, and this item is to be deleted."""

    pattern = keys.SKILL

    version = IntAttribute()
    name = TextAttribute()
    organization = TextAttribute()
    description = TextAttribute(null=True)
    icons = TextAttribute(null=True)
    tags = TextAttribute(null=True)
    aliases = TextAttribute(null=True)
    states = TextAttribute(null=True)
    last_number = IntAttribute()
    created_by = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()
    is_moved = FlagAttribute(null=True)


class SkillVersion(Item):
    """A version of a skill. The item stays when the version is deleted, until the skill is. Whether
    the version exists, and its status, is stored in the skill's item."""

    pattern = keys.SKILL_VERSION

    version = IntAttribute()
    workspace = TextAttribute()
    organization = TextAttribute()
    name = TextAttribute()
    number = IntAttribute()
    source_type = TextAttribute()
    source = TextAttribute()
    ref = TextAttribute(null=True)
    subpath = TextAttribute(null=True)
    digest = TextAttribute(null=True)
    tags = TextAttribute(null=True)
    created_by = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()
