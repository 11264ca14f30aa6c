"""Declares the DynamoDB item of a saved SQL query."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.models.base import Item


class SavedQuery(Item):
    """An SQL query with a name. ``name`` is as its owner spelled it; ``parameters`` is a JSON list
    of [name, type] or [name, type, default]; ``user_id`` distinguishes the owner from a later user
    of the same name, and is absent if nobody was logged in. Times are in milliseconds."""

    pattern = keys.SAVED_QUERY

    version = IntAttribute()
    name = TextAttribute()
    sql = TextAttribute()
    description = TextAttribute(null=True)
    parameters = TextAttribute()
    created_by = TextAttribute(null=True)
    user_id = IntAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()
