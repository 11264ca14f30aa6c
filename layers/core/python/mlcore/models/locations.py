"""Items of the list of locations."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextAttribute
from mlcore.models.base import Item


class Location(Item):
    """A key of the store and who names files below it: an experiment, or the version
    ``model_version`` in the partition ``home``. It counts as long as that is there."""

    pattern = keys.LOCATION

    version = IntAttribute()
    path = TextAttribute()
    experiment_id = TextAttribute(null=True)
    home = TextAttribute(null=True)
    model_version = IntAttribute(null=True)


class LocationList(Item):
    """The locations that were made before there was a list are in it, for this root of default
    locations."""

    pattern = keys.LOCATION_LIST

    version = IntAttribute()
    root = TextAttribute()
