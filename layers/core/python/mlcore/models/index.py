"""Items that make search fast, written by the indexer, and markers of what it still owes."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import DoubleAttribute, IntAttribute, TextAttribute
from mlcore.models.base import IndexedItem, Item


class EntityEntry(Item):
    """What an item of any kind may tell of the entity that it is about: a run, or ``entity_id``."""

    run_id = TextAttribute(null=True)
    entity_type = TextAttribute(null=True)
    entity_id = TextAttribute(null=True)


class DatasetLink(Item):
    """A run used a dataset."""

    pattern = keys.DATASET_LINK

    version = IntAttribute(null=True)
    run_id = TextAttribute()
    name = TextAttribute()
    digest = TextAttribute()


class RankMetric(Item):
    """The place of a run's latest value among those of its experiment."""

    pattern = keys.RANK_METRIC

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = DoubleAttribute()
    run_id = TextAttribute()


class RankParam(Item):
    """The place of a run's param among those of its experiment."""

    pattern = keys.RANK_PARAM

    version = IntAttribute(null=True)
    key = TextAttribute()
    value = TextAttribute()
    run_id = TextAttribute()


class Fts(IndexedItem):
    """An entity holds a token. ``level`` is the kind of token, word or trigram; ``field`` the text
    that holds it, if that is not the entity's name."""

    pattern = keys.FTS

    version = IntAttribute(null=True)
    field = TextAttribute(null=True)

    level = TextAttribute()
    token = TextAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()


class FtsRev(Item):
    """The same by entity, so that its tokens can be taken away."""

    pattern = keys.FTS_REV

    version = IntAttribute(null=True)
    field = TextAttribute(null=True)

    level = TextAttribute()
    token = TextAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()


class Pending(Item):
    """A write that the indexer has not followed yet; the entity tells its ``write_id``."""

    pattern = keys.PENDING

    version = IntAttribute()
    entity_type = TextAttribute()
    entity_id = TextAttribute()
    write_id = TextAttribute()


class MarkedExperiment(Item):
    """An experiment that had, at ``updated_at``, runs which the indexer had not followed."""

    pattern = keys.MARKED_EXPERIMENT

    version = IntAttribute()
    experiment_id = TextAttribute()
