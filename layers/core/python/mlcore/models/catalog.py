"""Declares the items of the model catalog. ``data`` and ``directory`` are JSON compressed with
zlib; the directory lists the shards of the generation."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import BytesAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class Catalog(Item):
    """The current generation; ``data`` holds its sources, labels and named queries."""

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
    """A shard of a generation, or a piece of a shard: the ``data`` of the pieces is
    concatenated."""

    pattern = keys.CATALOG_SHARD

    data = BytesAttribute()
