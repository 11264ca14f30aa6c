"""Declares the DynamoDB items of an experiment itself: its item, its tags and its name."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import (
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
    TextSetAttribute,
)
from mlcore.models.base import ChildItem, Item, StagedItem


class Experiment(StagedItem):
    """An experiment. ``epoch`` counts deletions and restorations; ``stage`` is active or deleted.

    ``fts`` lists the fields that the full-text index covers completely, ``fts_next`` the fields
    that it will cover after a rebuild. ``bytes`` is the size of the tags; ``overflow`` names the
    maps with entries in child items.
    """

    pattern = keys.EXPERIMENT

    experiment_id = TextAttribute()
    name = TextAttribute()
    workspace = TextAttribute()
    former_workspaces = TextSetAttribute()
    """The workspaces from which it was moved. Files with spans of its traces stay in the folders of
    these workspaces."""
    artifact_location = TextAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    tags = TextMapAttribute(null=True)
    fts = TextAttribute(null=True)
    fts_next = TextAttribute(null=True)
    number = IntAttribute(null=True)
    external_id = TextAttribute(null=True)
    property_types = TextMapAttribute(null=True)
    archival_request = TextAttribute(null=True)
    """The request to archive now (value of the tag) that the last archival passes executed."""
    archival_position = IntAttribute(null=True)
    """The request time, in milliseconds, up to which the archival passes have read the traces."""
    archival_started = IntAttribute(null=True)
    """When the archival passes began with the oldest trace, in milliseconds since the epoch."""
    is_purged = FlagAttribute(null=True)
    """Set when the permanent deletion of the experiment begins: it cannot be restored any more."""


class ExperimentTag(ChildItem):
    """A tag of an experiment, in a DynamoDB item of its own."""

    pattern = keys.EXPERIMENT_TAG

    value = TextAttribute()


class ExperimentNameRev(Item):
    """The item with an experiment's name, and in ``name_rev`` the name reversed, by which searches
    for the end of a name find the experiment."""

    pattern = keys.EXPERIMENT_NAME_REV

    version = IntAttribute()
    name = TextAttribute()
    name_rev = TextAttribute()


class ExperimentNameLock(Item):
    """Reserves a name in a workspace for an experiment."""

    pattern = keys.EXPERIMENT_NAME_LOCK

    version = IntAttribute()
    experiment_id = TextAttribute()
