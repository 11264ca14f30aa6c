"""Items of the model catalog. ``data`` is zlib of JSON, ``directory`` too: where the parts of the
generation are."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import BytesAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class Catalog(Item):
    """Which generation is read; ``data`` holds its sources, labels and named queries."""

    pattern = keys.CATALOG

    version = IntAttribute()
    generation = TextAttribute()
    directory = BytesAttribute(null=True)
    data = BytesAttribute()


class CatalogGeneration(Item):
    """A generation; ``status`` is ``writing``, ``read``, ``replaced`` (since ``updated_at``), or
    ``leaving``, whose items are being deleted."""

    pattern = keys.CATALOG_GENERATION

    generation = TextAttribute()
    status = TextAttribute()
    directory = BytesAttribute(null=True)
    data = BytesAttribute()


class CatalogShard(Item):
    """A part of a generation, or a piece of one: ``data`` of several is one after the other."""

    pattern = keys.CATALOG_SHARD

    data = BytesAttribute()
