"""Base classes of the items' PynamoDB models: attributes, index keys, the shared connection."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self

from mlcore.db.attribute_types import FlagAttribute, IntAttribute, ItemAttribute, TextAttribute
from mlcore.db.client import client
from mlcore.db.item_serialization import Writer, compile_writer
from mlcore.db.item_views import Raw, View, compile_view
from mlcore.db.keys import Pattern
from mlcore.db.pynamodb_classes import (
    Connection,
    GlobalSecondaryIndex,
    KeysOnlyProjection,
    LocalSecondaryIndex,
    MetaTable,
    Model,
    TableConnection,
)
from mlcore.environment import settings

MODELS: dict[str, type[Item]] = {}
"""The models imported so far, by the ``type`` of their items."""


_VIEWS: dict[type[Item], type[View]] = {}
_WRITERS: dict[type[Item], Writer] = {}


class _Settings(type):
    """Base of ``Item.Meta`` that reads ``table_name`` from the environment at first use, not at
    import."""

    @property
    def table_name(cls) -> str:
        return settings().table_name


class _SharedConnection(Connection):
    """PynamoDB's connection, made with the client that the whole process shares."""

    @property
    def client(self) -> Any:
        return client()


@functools.cache
def _shared_connection() -> TableConnection:
    names = ["PK", "SK", *(f"lsi{n}sk" for n in range(1, 6))]
    names += [f"gsi{n}{half}" for n in range(1, 6) for half in ("pk", "sk")]

    def schema(partition: str, sort: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": sort, "KeyType": "RANGE"},
        ]

    table = MetaTable(
        {
            "TableName": settings().table_name,
            "KeySchema": schema("PK", "SK"),
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
            "LocalSecondaryIndexes": [
                {"IndexName": f"LSI{n}", "KeySchema": schema("PK", f"lsi{n}sk")}
                for n in range(1, 6)
            ],
            "GlobalSecondaryIndexes": [
                {"IndexName": f"GSI{n}", "KeySchema": schema(f"gsi{n}pk", f"gsi{n}sk")}
                for n in range(1, 6)
            ],
        }
    )
    connection = TableConnection(settings().table_name)
    connection.connection = _SharedConnection()
    connection.connection.add_meta_table(table)
    return connection


class Item(Model):
    """An item of the DynamoDB table; base class of the PynamoDB models of all items. Subclasses
    set the pattern of their key."""

    pattern: ClassVar[Pattern]

    class Meta(metaclass=_Settings):
        """The options that PynamoDB reads from a model's class. Timeouts and retries are those of
        the client that the process shares."""

    PK = TextAttribute(hash_key=True)
    SK = TextAttribute(range_key=True)
    type = TextAttribute()
    updated_at = IntAttribute(null=True)
    ttl = IntAttribute(null=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "pattern" in cls.__dict__:
            MODELS[cls.pattern.name] = cls

    def __init__(
        self,
        hash_key: str | None = None,
        range_key: str | None = None,
        _user_instantiated: bool = True,
        **attributes: Any,
    ) -> None:
        if hash_key is not None or range_key is not None or not _user_instantiated:
            super().__init__(hash_key, range_key, _user_instantiated, **attributes)
            return
        attributes.setdefault("type", self.pattern.name)
        self.attribute_values = attributes

    def serialize(self, null_check: bool = True) -> Raw:
        """Returns the raw item (DynamoDB JSON). Raises ValueError for an undeclared attribute, and
        AttributeNullError for a missing required one."""
        if not null_check:
            return super().serialize(null_check=False)
        writer = _WRITERS.get(type(self))
        if writer is None:
            writer = _WRITERS[type(self)] = compile_writer(type(self))
        return writer(self.attribute_values)

    @classmethod
    def of(cls, item: Raw) -> Self:
        """Returns a read-only view of a raw item: its attributes are converted when they are read.
        The view has none of a model's methods."""
        view = _VIEWS.get(cls)
        if view is None:
            view = _VIEWS[cls] = compile_view(cls)
        made: Any = view(item)
        return made  # type: ignore[no-any-return]  # a View with the model's attributes

    @classmethod
    def _get_connection(cls) -> TableConnection:
        return _shared_connection()


KEY: tuple[ItemAttribute[str], ItemAttribute[str]] = (Item.PK, Item.SK)
"""The attributes to request if only keys are needed."""


class ChildItem(Item):
    """An item that holds one entry (a tag, a param) of a map of its parent item. If ``outside`` is
    set, the entry is stored only here, because the parent item has no room for it."""

    key = TextAttribute()
    text = TextAttribute(null=True)
    outside = FlagAttribute(null=True)


def _local(number: int) -> LocalSecondaryIndex[Any]:
    meta = type("Meta", (), {"index_name": f"LSI{number}", "projection": KeysOnlyProjection()})
    keys = {
        "PK": TextAttribute(hash_key=True),
        f"lsi{number}sk": TextAttribute(range_key=True),
    }
    made: LocalSecondaryIndex[Any] = type(
        f"LSI{number}", (LocalSecondaryIndex,), {"Meta": meta, **keys}
    )()
    return made


def _global(number: int) -> GlobalSecondaryIndex[Any]:
    meta = type("Meta", (), {"index_name": f"GSI{number}", "projection": KeysOnlyProjection()})
    keys = {
        f"gsi{number}pk": TextAttribute(hash_key=True),
        f"gsi{number}sk": TextAttribute(range_key=True),
    }
    made: GlobalSecondaryIndex[Any] = type(
        f"GSI{number}", (GlobalSecondaryIndex,), {"Meta": meta, **keys}
    )()
    return made


class IndexedItem(Item):
    """An item with keys in secondary indexes. (Items with metric history or spans also have a key
    in a local index, but declare it themselves.)"""

    lsi1sk = TextAttribute(null=True)
    lsi2sk = TextAttribute(null=True)
    lsi3sk = TextAttribute(null=True)
    lsi4sk = TextAttribute(null=True)
    lsi5sk = TextAttribute(null=True)
    gsi1pk = TextAttribute(null=True)
    gsi1sk = TextAttribute(null=True)
    gsi2pk = TextAttribute(null=True)
    gsi2sk = TextAttribute(null=True)
    gsi3pk = TextAttribute(null=True)
    gsi3sk = TextAttribute(null=True)
    gsi4pk = TextAttribute(null=True)
    gsi4sk = TextAttribute(null=True)
    gsi5pk = TextAttribute(null=True)
    gsi5sk = TextAttribute(null=True)

    lsi1 = _local(1)
    lsi2 = _local(2)
    lsi3 = _local(3)
    lsi4 = _local(4)
    lsi5 = _local(5)
    gsi1 = _global(1)
    gsi2 = _global(2)
    gsi3 = _global(3)
    gsi4 = _global(4)
    gsi5 = _global(5)


class MetaItem(IndexedItem):
    """The main item of an entity, with its maps (tags, params, …). ``version`` counts writes,
    ``bytes`` is the size of the maps; ``overflow`` names the maps with entries in child items."""

    version = IntAttribute()
    bytes = IntAttribute(null=True)
    overflow = TextAttribute(null=True)


class StagedItem(MetaItem):
    """An entity that can be deleted and restored: ``stage`` is active or deleted. The subclass says
    what ``epoch`` counts."""

    stage = TextAttribute()
    epoch = IntAttribute()
