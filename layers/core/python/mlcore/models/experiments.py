"""Items of an experiment itself."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, Item, StagedItem


class Experiment(StagedItem):
    """An experiment. ``epoch`` counts deletions and restorations; ``stage`` is active or deleted.

    ``fts`` tells which texts of its runs the full-text index holds completely, ``fts_next`` which
    it is to hold. ``bytes`` is the size of the tags; ``overflow`` names the maps that have texts
    outside.
    """

    pattern = keys.EXPERIMENT

    experiment_id = TextAttribute()
    name = TextAttribute()
    workspace = TextAttribute()
    artifact_location = TextAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    tags = TextMapAttribute(null=True)
    fts = TextAttribute(null=True)
    fts_next = TextAttribute(null=True)
    number = IntAttribute(null=True)
    external_id = TextAttribute(null=True)
    property_types = TextMapAttribute(null=True)


class ExperimentTag(ChildItem):
    """A tag of an experiment."""

    pattern = keys.EXPERIMENT_TAG

    value = TextAttribute()


class ExperimentNameRev(Item):
    """The experiment's name, and reversed in ``name_rev``."""

    pattern = keys.EXPERIMENT_NAME_REV

    version = IntAttribute()
    name = TextAttribute()
    name_rev = TextAttribute()


class ExperimentNameLock(Item):
    """Who holds a name in a workspace."""

    pattern = keys.EXPERIMENT_NAME_LOCK

    version = IntAttribute()
    experiment_id = TextAttribute()
