"""Declares the item of an alert: its definition and its state."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute
from mlcore.models.base import IndexedItem


class Alert(IndexedItem):
    """An alert with its state. ``parameters``, ``casts`` and ``destinations`` are JSON; addresses
    and secrets of destinations are encrypted by :mod:`mlcore.secrets`. ``version`` counts the
    writes by users. ``evaluations`` counts the writes of the state; it starts at a random number.
    An alert that is evaluated by schedule has a key in LSI2. Times are in milliseconds."""

    pattern = keys.ALERT

    version = IntAttribute()
    evaluations = IntAttribute()
    workspace = TextAttribute()
    alert_id = TextAttribute()
    name = TextAttribute()
    sql = TextAttribute(null=True)
    parameters = TextAttribute(null=True)
    casts = TextAttribute(null=True)
    saved = TextAttribute(null=True)
    budget_policy_id = TextAttribute(null=True)
    condition = TextAttribute()
    interval_minutes = IntAttribute()
    for_evaluations = IntAttribute()
    reminder_hours = IntAttribute()
    is_enabled = FlagAttribute()
    destinations = TextAttribute(null=True)
    created_by = TextAttribute(null=True)
    user_id = IntAttribute(null=True)
    key_id = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()
    due_time = IntAttribute()
    state = TextAttribute()
    state_since = IntAttribute(null=True)
    value = TextAttribute(null=True)
    """A double as text, because DynamoDB's numbers have no NaN and no infinity."""
    error = TextAttribute(null=True)
    evaluated_at = IntAttribute(null=True)
    met_in_a_row = IntAttribute()
    notified_at = IntAttribute(null=True)
    event = TextAttribute(null=True)
    """The announcement (:mod:`mlcore.webhooks.announcement`) of a message to the destinations, if
    the last write of the item made one."""
