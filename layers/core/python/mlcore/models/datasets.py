"""Items of datasets."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.models.base import Item


class Dataset(Item):
    """A dataset. In place of a field that is too large, ``<field>_parts`` counts its parts."""

    pattern = keys.DATASET

    name = UnicodeAttribute()
    digest = UnicodeAttribute()
    source_type = UnicodeAttribute()
    source = UnicodeAttribute(null=True)
    schema = UnicodeAttribute(null=True)
    profile = UnicodeAttribute(null=True)
    source_parts = UnicodeAttribute(null=True)
    schema_parts = UnicodeAttribute(null=True)
    profile_parts = UnicodeAttribute(null=True)


class DatasetPart(Item):
    """A piece of a dataset's field."""

    pattern = keys.DATASET_PART

    content = UnicodeAttribute()
