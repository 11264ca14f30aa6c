"""Declares the items of the list of locations: paths in the artifact store that differ from the
default path of their owner.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.models.base import Item


class Location(Item):
    """A path in the artifact store and its owner: an experiment, or a version of a registered model
    (``model_version`` in the partition ``home``). The entry is valid as long as the owner exists.
    If the path is the folder of a run that was moved to the experiment, ``run_id`` is the run."""

    pattern = keys.LOCATION

    version = IntAttribute()
    path = TextAttribute()
    experiment_id = TextAttribute(null=True)
    home = TextAttribute(null=True)
    model_version = IntAttribute(null=True)
    run_id = TextAttribute(null=True)


class LocationList(Item):
    """Records for which ``ARTIFACT_ROOT`` the list of artifact locations is complete: it has every
    experiment whose files lie outside of ``<ARTIFACT_ROOT>/<experiment id>``."""

    pattern = keys.LOCATION_LIST

    version = IntAttribute()
    root = TextAttribute()
