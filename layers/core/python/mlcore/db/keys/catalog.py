"""Keys of the model catalog. A *generation* is one complete version of the catalog; the table holds
the id of the current one, a list of all, and for each a partition with its items.
"""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

CATALOG = Pattern(
    "catalog",
    "CSRC",
    "CSRC#CURRENT",
    "the generation of the catalog that is read, with the state of its sources",
)
CATALOG_GENERATION = Pattern(
    "catalog_generation",
    "CSRC",
    "CSRC#GENERATION#<write_id>",
    "a generation of the catalog that has items: one being written, read, or no longer read",
)
CATALOG_SHARD = Pattern(
    "catalog_shard",
    "CSRC#<write_id>",
    "CSRC#SHARD#<number>",
    "a part of a generation of the catalog: models, MCP servers, or values that lists ask for",
)

CATALOG_PATTERNS = (CATALOG, CATALOG_GENERATION, CATALOG_SHARD)


def catalog() -> Key:
    return Key(CATALOG.pk.text, CATALOG.sk.text)


def catalog_generation(generation: str) -> Key:
    return Key(CATALOG_GENERATION.pk.text, CATALOG_GENERATION.sk.build(generation))


def catalog_generation_prefix() -> str:
    return CATALOG_GENERATION.sk.prefix()


def catalog_shards(generation: str) -> str:
    """Returns the partition key of the items of one generation of the model catalog."""
    return CATALOG_SHARD.pk.build(generation)


def catalog_shard(generation: str, number: int) -> Key:
    return Key(catalog_shards(generation), CATALOG_SHARD.sk.build(number))
