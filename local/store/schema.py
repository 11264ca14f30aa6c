"""The keys and indexes of a table, and the SQL that creates the tables of its file.

An item is one row: its JSON, its size, and a column for each key attribute of the table and of its
indexes. A trigger writes the stream record of a change in the same transaction.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

from local.store.attribute_values import Raw, name_size
from local.store.errors import invalid, invalid_parameter

HASH_KEY_BYTES: Final = 2048
RANGE_KEY_BYTES: Final = 1024

_OWN_COLUMNS: Final = ("id", "rev", "size", "type", "data")


class Index(NamedTuple):
    """An index of a DynamoDB table; with ``name`` None, the table itself."""

    name: str | None
    partition: str
    sort: str
    is_global: bool
    projected: frozenset[str] | None
    """The attributes of its entries; None for all."""
    order: tuple[str, ...]
    """The attributes by which entries of one partition are ordered."""
    others: tuple[str, ...] = ()
    """The projected attributes that are no keys, if not all attributes are projected."""

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes of LastEvaluatedKey, the key from which a page of this index continues:
        the table's key first."""
        return tuple(dict.fromkeys((*self.order[1:], self.partition, self.sort)))

    def columns(self) -> tuple[str, ...]:
        """Returns the columns of the SQL index that implements this index of the DynamoDB table, in
        order."""
        return tuple(dict.fromkeys((self.partition, *self.order)))


class Schema:
    """The schema of a table: its keys and indexes, read from the parameters of CreateTable."""

    def __init__(self, definition: Raw) -> None:
        """Reads the parameters of CreateTable.

        Raises:
            ClientError: a key is not a string, the table or an index has no sort key, the key
                attributes are not those of AttributeDefinitions, or this store cannot use one of
                their names.
        """
        self.name: str = definition["TableName"]
        types = {
            attribute["AttributeName"]: attribute["AttributeType"]
            for attribute in definition["AttributeDefinitions"]
        }
        if set(types.values()) != {"S"}:
            raise invalid_parameter("this store supports only keys that are strings")
        self.partition, self.sort = _keys(definition["KeySchema"])
        self.keys = (self.partition, self.sort)
        self.table = Index(None, *self.keys, False, None, (self.sort,))
        self.indexes = {
            index["IndexName"]: self._index(index, is_global=kind.startswith("Global"))
            for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
            for index in definition.get(kind) or ()
        }
        used = [*self.keys]
        for index in self.indexes.values():
            used += [index.partition, index.sort]
        self.attributes = tuple(dict.fromkeys(used))
        """The key attributes of the table and of its indexes: the columns of its rows."""
        if set(self.attributes) != types.keys():
            raise invalid_parameter(
                "Number of attributes in KeySchema does not exactly match number of attributes "
                "defined in AttributeDefinitions"
            )
        folded = [name.lower() for name in (*self.attributes, *_OWN_COLUMNS)]
        if len(set(folded)) != len(folded) or any('"' in name for name in folded):
            raise invalid_parameter(
                "key attributes may contain no quotation mark, and must differ in more than case "
                f"from each other and from {', '.join(_OWN_COLUMNS)}"
            )
        self.indexed = self.attributes[2:]
        specification = definition.get("StreamSpecification") or {}
        self.has_stream = bool(specification.get("StreamEnabled"))

    def _index(self, definition: Raw, *, is_global: bool) -> Index:
        partition, sort = _keys(definition["KeySchema"])
        projection = definition["Projection"]
        projected = None
        others: tuple[str, ...] = ()
        if projection["ProjectionType"] != "ALL":
            key = (*self.keys, partition, sort)
            more = projection.get("NonKeyAttributes") or ()
            projected = frozenset((*key, *more))
            others = tuple(name for name in more if name not in key)
        order = (sort, self.partition, self.sort) if is_global else (sort, self.sort)
        return Index(definition["IndexName"], partition, sort, is_global, projected, order, others)

    # -- items -------------------------------------------------------------------------------------

    def key_of(self, key: Any) -> tuple[str, str]:
        """Returns the partition key and sort key in a request's key, as texts.

        Raises:
            ClientError: the attributes are not those of this table's key, or one is empty or too
                long.
        """
        try:
            pk, sk = key[self.partition]["S"], key[self.sort]["S"]
        except (KeyError, TypeError) as failure:
            raise invalid("The provided key element does not match the schema") from failure
        if len(key) != 2:
            raise invalid("The provided key element does not match the schema")
        self._check_key(pk, sk)
        return pk, sk

    def key_of_item(self, item: Raw) -> tuple[str, str]:
        """Returns the partition key and sort key of an item to be written, as texts.

        Raises:
            ClientError: the item lacks a key attribute, or a key is not a string, is empty or is
                too long.
        """
        texts = []
        for name in self.keys:
            value = item.get(name)
            if value is None:
                raise invalid_parameter(f"Missing the key {name} in the item")
            if "S" not in value:
                raise invalid_parameter(
                    f"Type mismatch for key {name} expected: S actual: {next(iter(value))}"
                )
            texts.append(value["S"])
        self._check_key(*texts)
        return texts[0], texts[1]

    def _check_key(self, pk: str, sk: str) -> None:
        if (
            type(pk) is type(sk) is str
            and 0 < len(pk) <= HASH_KEY_BYTES
            and 0 < len(sk) <= RANGE_KEY_BYTES
            and pk.isascii()
            and sk.isascii()
        ):
            return
        for name, text in ((self.partition, pk), (self.sort, sk)):
            if not text:
                raise invalid(
                    "One or more parameter values are not valid. The AttributeValue for a key "
                    f"attribute cannot contain an empty string value. Key: {name}"
                )
        if name_size(pk) > HASH_KEY_BYTES:
            raise invalid_parameter(
                f"Size of hashkey has exceeded the maximum size limit of{HASH_KEY_BYTES} bytes"
            )
        if name_size(sk) > RANGE_KEY_BYTES:
            raise invalid_parameter(
                "Aggregated size of all range keys has exceeded the size limit of "
                f"{RANGE_KEY_BYTES} bytes"
            )

    def indexed_values(self, item: Raw) -> tuple[str | None, ...]:
        """Returns an item's values of the key attributes of all indexes (:attr:`indexed`); None for
        an attribute that it lacks.

        Raises:
            ClientError: a value is not a string, is empty or is too long.
        """
        values: list[str | None] = []
        for name in self.indexed:
            value = item.get(name)
            if value is None:
                values.append(None)
                continue
            text = value.get("S")
            if not text or len(text) > RANGE_KEY_BYTES // 4:
                self._check_indexed(name, value)
            values.append(text)
        return tuple(values)

    def _check_indexed(self, name: str, value: Raw) -> None:
        index = next(i for i in self.indexes.values() if name in (i.partition, i.sort))
        if "S" not in value:
            raise invalid_parameter(
                f"Type mismatch for Index Key {name} Expected: S Actual: {next(iter(value))} "
                f"IndexName: {index.name}"
            )
        if not value["S"]:
            raise invalid(
                "One or more parameter values are not valid. A value specified for a secondary "
                "index key is not supported. The AttributeValue for a key attribute cannot contain "
                f"an empty string value. IndexName: {index.name}, IndexKey: {name}"
            )
        size = name_size(value["S"])
        if name == index.partition and size > HASH_KEY_BYTES:
            raise invalid_parameter(
                f"Size of hashkey has exceeded the maximum size limit of {HASH_KEY_BYTES} bytes"
            )
        if name == index.sort and size > RANGE_KEY_BYTES:
            raise invalid_parameter(
                "Aggregated size of all range keys has exceeded the size limit of "
                f"{RANGE_KEY_BYTES} bytes"
            )

    # -- SQL ---------------------------------------------------------------------------------------

    @property
    def statements(self) -> list[str]:
        """The SQL statements that create the SQLite tables, indexes and triggers of a new file,
        which holds one empty DynamoDB table."""
        return [*self.tables, *self.sql_indexes, *self.triggers]

    @cached_property
    def tables(self) -> list[str]:
        """The SQL statements that create the tables of a new SQLite file."""
        columns = "".join(f", {quoted(name)} TEXT" for name in self.indexed)
        return [
            "CREATE TABLE items (id INTEGER PRIMARY KEY, rev INTEGER NOT NULL,"
            f" {quoted(self.partition)} TEXT NOT NULL, {quoted(self.sort)} TEXT NOT NULL,"
            f" size INTEGER NOT NULL, type TEXT{columns}, data TEXT NOT NULL)",
            f"CREATE UNIQUE INDEX items_key ON items({_list(self.keys)})",
            "CREATE TABLE stream (id INTEGER PRIMARY KEY, event TEXT NOT NULL, type TEXT,"
            " pk TEXT NOT NULL, sk TEXT NOT NULL, created INTEGER NOT NULL, new TEXT, old TEXT)",
            "CREATE TABLE tokens (token TEXT PRIMARY KEY, request TEXT NOT NULL,"
            " created REAL NOT NULL) WITHOUT ROWID",
            "CREATE INDEX tokens_created ON tokens(created)",
            "CREATE TABLE description (id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT NOT NULL)",
        ]

    @cached_property
    def sql_indexes(self) -> list[str]:
        """The statements that create the SQL indexes of the SQLite file, one for each index of the
        DynamoDB table."""
        made = []
        for index in self.indexes.values():
            present = " AND ".join(
                f"{quoted(name)} IS NOT NULL"
                for name in (index.partition, index.sort)
                if name in self.indexed
            )
            made.append(
                f"CREATE INDEX {quoted(f'items_{index.name}')} ON items({_list(index.columns())})"
                f" WHERE {present}"
            )
        return made

    @cached_property
    def triggers(self) -> list[str]:
        """The SQL statements that create the SQLite triggers that write the stream's records."""
        if not self.has_stream:
            return []
        made = []
        for event, when, row, new, old in (
            ("INSERT", "INSERT", "NEW", "NEW.data", "NULL"),
            ("MODIFY", "UPDATE OF data", "NEW", "NEW.data", "OLD.data"),
            ("REMOVE", "DELETE", "OLD", "NULL", "OLD.data"),
        ):
            key = ", ".join(f"{row}.{quoted(name)}" for name in self.keys)
            made.append(
                f"CREATE TRIGGER stream_{event.lower()} AFTER {when} ON items BEGIN"  # noqa: S608
                " INSERT INTO stream(event, type, pk, sk, created, new, old) VALUES"
                f" ('{event}', {row}.type, {key}, CAST(strftime('%s', 'now') AS INTEGER),"
                f" {new}, {old}); END"
            )
        return made


def quoted(name: str) -> str:
    """Returns a name in quotes, as an SQL identifier."""
    return f'"{name}"'


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


def _keys(key_schema: list[dict[str, str]]) -> tuple[str, str]:
    names = {part["KeyType"]: part["AttributeName"] for part in key_schema}
    if names.keys() != {"HASH", "RANGE"}:
        raise invalid_parameter(
            "this store supports only tables with a partition key and a sort key"
        )
    return names["HASH"], names["RANGE"]
