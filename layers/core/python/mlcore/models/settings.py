"""Declares the DynamoDB item of a setting of the deployment."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.models.base import Item


class Config(Item):
    """A setting of the deployment; its value is JSON."""

    pattern = keys.CONFIG

    version = IntAttribute()
    key = TextAttribute()
    value = TextAttribute()
