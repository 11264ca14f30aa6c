"""Items of webhooks."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute
from mlcore.models.base import Item


class Webhook(Item):
    """A webhook. ``events`` are names such as ``prompt.created``, with spaces between them;
    ``secret`` is what :mod:`mlcore.secrets` made of it."""

    pattern = keys.WEBHOOK

    webhook_id = UnicodeAttribute()
    name = UnicodeAttribute()
    url = UnicodeAttribute()
    events = UnicodeAttribute()
    status = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    secret = UnicodeAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
