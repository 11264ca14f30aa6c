"""Items of an experiment itself."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class Experiment(IndexedItem):
    """An experiment. ``epoch`` counts deletions and restorations; ``stage`` is active or deleted.

    ``fts`` tells which texts of its runs the full-text index holds completely, ``fts_next`` which
    it is to hold. ``bytes`` is the size of the tags; ``overflow`` names the maps that have texts
    outside.
    """

    pattern = keys.EXPERIMENT

    experiment_id = UnicodeAttribute()
    name = UnicodeAttribute()
    workspace = UnicodeAttribute()
    artifact_location = UnicodeAttribute()
    stage = UnicodeAttribute()
    epoch = IntAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    tags = TextMapAttribute(null=True)
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)
    fts = UnicodeAttribute(null=True)
    fts_next = UnicodeAttribute(null=True)


class ExperimentTag(ChildItem):
    """A tag of an experiment."""

    pattern = keys.EXPERIMENT_TAG

    value = UnicodeAttribute()


class ExperimentNameRev(Item):
    """The experiment's name, and reversed in ``name_rev``."""

    pattern = keys.EXPERIMENT_NAME_REV

    name = UnicodeAttribute()
    name_rev = UnicodeAttribute()


class ExperimentNameLock(Item):
    """Who holds a name in a workspace."""

    pattern = keys.EXPERIMENT_NAME_LOCK

    experiment_id = UnicodeAttribute()
