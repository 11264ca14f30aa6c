"""Declares the items of the datasets that runs use."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagMapAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class Dataset(Item):
    """A dataset that runs of an experiment use. A field that is too large is stored in parts,
    counted by ``<field>_parts``. ``contexts`` has a flag for each use (``mlflow.data.context``,
    such as ``training``) of the dataset by a run."""

    pattern = keys.DATASET

    version = IntAttribute()
    name = TextAttribute()
    digest = TextAttribute()
    source_type = TextAttribute()
    source = TextAttribute(null=True)
    schema = TextAttribute(null=True)
    profile = TextAttribute(null=True)
    source_parts = TextAttribute(null=True)
    schema_parts = TextAttribute(null=True)
    profile_parts = TextAttribute(null=True)
    contexts = FlagMapAttribute(null=True)


class DatasetPart(Item):
    """One part of the text of a field, too large for its item, of a dataset that runs use."""

    pattern = keys.DATASET_PART

    version = IntAttribute()
    content = TextAttribute()
