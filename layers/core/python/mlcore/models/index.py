"""Items that make search fast, written by the indexer, and markers of what it still owes."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import DoubleAttribute
from mlcore.models.base import IndexedItem, Item


class DatasetLink(Item):
    """A run used a dataset."""

    pattern = keys.DATASET_LINK

    run_id = UnicodeAttribute()
    name = UnicodeAttribute()
    digest = UnicodeAttribute()


class RankMetric(Item):
    """The place of a run's latest value among those of its experiment."""

    pattern = keys.RANK_METRIC

    key = UnicodeAttribute()
    value = DoubleAttribute()
    run_id = UnicodeAttribute()


class RankParam(Item):
    """The place of a run's param among those of its experiment."""

    pattern = keys.RANK_PARAM

    key = UnicodeAttribute()
    value = UnicodeAttribute()
    run_id = UnicodeAttribute()


class Fts(IndexedItem):
    """An entity holds a token. ``level`` is the kind of token, word or trigram; ``field`` the text
    that holds it, if that is not the entity's name."""

    pattern = keys.FTS

    field = UnicodeAttribute(null=True)

    level = UnicodeAttribute()
    token = UnicodeAttribute()
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()


class FtsRev(Item):
    """The same by entity, so that its tokens can be taken away."""

    pattern = keys.FTS_REV

    field = UnicodeAttribute(null=True)

    level = UnicodeAttribute()
    token = UnicodeAttribute()
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()


class Pending(Item):
    """A write that the indexer has not followed yet; the entity tells its ``write_id``."""

    pattern = keys.PENDING

    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()
    write_id = UnicodeAttribute()
