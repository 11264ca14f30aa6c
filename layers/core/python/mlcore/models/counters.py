"""Declares the DynamoDB items of counters, from which ids are assigned."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute
from mlcore.models.base import Item


class Counter(Item):
    """A named counter: the last number that was assigned."""

    pattern = keys.COUNTER

    value = IntAttribute()


class IdCounter(Item):
    """The last numeric ids that were assigned. ``contexts`` counts experiments and Kubeflow's
    contexts; Kubeflow's artifacts and executions have counters of their own. ``since`` is when the
    first of all these ids was assigned, or, if earlier, when the oldest imported experiment was
    made."""

    pattern = keys.ID_COUNTER

    version = IntAttribute()
    contexts = IntAttribute(null=True)
    artifacts = IntAttribute(null=True)
    executions = IntAttribute(null=True)
    since = IntAttribute()
