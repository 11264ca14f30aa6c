"""Declares the DynamoDB items in which webhooks are stored."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.models.base import Item


class Webhook(Item):
    """A webhook. ``events`` are names such as ``prompt.created``, with spaces between them;
    ``secret`` is encrypted by :mod:`mlcore.secrets`."""

    pattern = keys.WEBHOOK

    version = IntAttribute()
    webhook_id = TextAttribute()
    name = TextAttribute()
    url = TextAttribute()
    events = TextAttribute()
    status = TextAttribute()
    description = TextAttribute(null=True)
    secret = TextAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
