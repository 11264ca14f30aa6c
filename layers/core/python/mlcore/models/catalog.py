"""Declares the items of the model catalog. A *generation* is one complete version of the catalog, a
*shard* a part of it.

``data`` and ``directory`` are JSON compressed with zlib; the directory lists the shards of the
generation.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import BytesAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class Catalog(Item):
    """The item that names the current generation of Kubeflow's model catalog; ``data`` holds the
    catalog's sources, labels and named queries (named filters)."""

    pattern = keys.CATALOG

    version = IntAttribute()
    generation = TextAttribute()
    directory = BytesAttribute(null=True)
    data = BytesAttribute()


class CatalogGeneration(Item):
    """A generation (one load) of the model catalog. ``status`` is ``writing``, ``read`` (the
    current one), ``replaced`` (since ``updated_at``), or ``leaving`` while its items are being
    deleted."""

    pattern = keys.CATALOG_GENERATION

    generation = TextAttribute()
    status = TextAttribute()
    directory = BytesAttribute(null=True)
    data = BytesAttribute()


class CatalogShard(Item):
    """A shard of a generation of the model catalog, or one piece of a large shard: the ``data`` of
    all pieces is concatenated."""

    pattern = keys.CATALOG_SHARD

    data = BytesAttribute()
