"""Migrates the data of an earlier engine: converts the file in which that engine (dynoxide) stored
a table to the store's file of the table.

Data folders from before this product had a store of its own contain such a file, which is not
changed. An interrupted conversion continues where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.store.attribute_values import checked_values
from local.store.database import connect, create, remove
from local.store.schema import Schema, quoted
from local.store.table_store import encode, next_revision, type_of

ROWS: Final = 2000
"""Rows that are copied in one transaction. After an interruption at most this many are copied
again."""

Progress = Callable[[int, int], None]
"""A function that takes how many items and stream records are converted, and how many there are
in all."""

_ARN: Final = "arn:aws:dynamodb:dynoxide:000000000000:table"
_STREAM: Final = (
    "SELECT CAST(sequence_number AS INTEGER), event_name, new_image, old_image, created_at"
    " FROM _stream_records WHERE table_name = ? AND CAST(sequence_number AS INTEGER) > ?"
    " ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?"
)


class _Position(NamedTuple):
    """How far a draft file has been filled. ``source`` is the source's last stream record when the
    conversion began; if it has changed, a continued conversion starts again.
    """

    source: int
    pk: str = ""
    sk: str = ""
    record: int = 0
    done: int = 0


def holds(path: Path, table: str) -> bool:
    """Returns whether a file of the earlier engine (dynoxide) contains the table; False if there is
    no file.

    Raises:
        sqlite3.Error: the file cannot be read.
    """
    if not path.is_file():
        return False
    with contextlib.closing(_opened(path)) as source:
        row = source.execute("SELECT 1 FROM _tables WHERE table_name = ?", (table,)).fetchone()
    return row is not None


def convert(path: Path, table: str, target: Path, progress: Progress) -> None:
    """Converts a table from ``path``, the file of the engine that earlier versions used in
    DynamoDB's place, to this version's file ``target``. Does not change ``path``.

    Args:
        progress: called repeatedly with how much has been converted.

    Raises:
        sqlite3.Error, OSError: a file cannot be read or written. A later call continues the
            conversion.
    """
    draft = target.with_name(f"{target.name}.converting")
    with contextlib.closing(_opened(path)) as source:
        schema, description = _described(source, table)
        last = source.execute(
            "SELECT max(CAST(sequence_number AS INTEGER)) FROM _stream_records"
            " WHERE table_name = ?",
            (table,),
        ).fetchone()[0]
        begin = _begin(draft, schema, int(last or 0))
        total = _count(source, table)
        with contextlib.closing(connect(draft)) as made:
            made.execute("PRAGMA synchronous=NORMAL").close()
            position = _copy_items(source, made, schema, begin, lambda n: progress(n, total))
            _copy_stream(source, made, schema, position, lambda n: progress(n, total))
            made.execute("BEGIN IMMEDIATE")
            for statement in (*schema.sql_indexes, *schema.triggers, "DROP TABLE conversion"):
                made.execute(statement)
            made.execute("INSERT INTO description VALUES (1, ?)", (encode(description),))
            made.execute("COMMIT")
            made.execute("PRAGMA synchronous=FULL").close()
            made.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    draft.replace(target)
    remove(draft)
    progress(total, total)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _described(source: sqlite3.Connection, table: str) -> tuple[Schema, dict[str, Any]]:
    """Returns the table's schema and its description. The description keeps the engine's label of
    the stream, under which the runner stores how far it has processed the stream.
    """
    row = source.execute(
        "SELECT key_schema, attribute_definitions, lsi_definitions, gsi_definitions, stream_label,"
        " ttl_attribute, created_at FROM _tables WHERE table_name = ?",
        (table,),
    ).fetchone()
    keys, attributes, local, for_all, label, ttl, created = row
    description: dict[str, Any] = {
        "TableName": table,
        "TableArn": f"{_ARN}/{table}",
        "TableStatus": "ACTIVE",
        "CreationDateTime": float(created),
        "AttributeDefinitions": json.loads(attributes),
        "KeySchema": json.loads(keys),
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "LocalSecondaryIndexes": json.loads(local or "[]"),
        "GlobalSecondaryIndexes": json.loads(for_all or "[]"),
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "LatestStreamLabel": label,
        "LatestStreamArn": f"{_ARN}/{table}/stream/{label}",
    }
    if ttl:
        description["TimeToLiveSpecification"] = {"Enabled": True, "AttributeName": ttl}
    return Schema(description), description


def _begin(draft: Path, schema: Schema, last: int) -> _Position:
    """Returns the position at which a conversion continues. Creates a new draft file if there is
    none, if it is unusable, or if the source has changed since the draft was begun.
    """
    if draft.exists():
        with contextlib.closing(connect(draft)) as made, contextlib.suppress(sqlite3.Error):
            position = _Position(*made.execute("SELECT * FROM conversion").fetchone())
            if position.source == last:
                return position
        remove(draft)
    position = _Position(last)
    create(
        draft,
        [*schema.tables, "CREATE TABLE conversion (source, pk, sk, record, done)"],
        [("INSERT INTO conversion VALUES (?, ?, ?, ?, ?)", position)],
    )
    return position


def _count(source: sqlite3.Connection, table: str) -> int:
    items = source.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0]  # noqa: S608
    records = source.execute(
        "SELECT count(*) FROM _stream_records WHERE table_name = ?", (table,)
    ).fetchone()[0]
    return int(items + records)


def _copy_items(
    source: sqlite3.Connection,
    made: sqlite3.Connection,
    schema: Schema,
    position: _Position,
    progress: Callable[[int], None],
) -> _Position:
    columns = ["rev", "size", "type", "data", *map(quoted, schema.attributes)]
    insert = f"INSERT INTO items({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
    page = (
        f"SELECT pk, sk, item_json FROM {quoted(schema.name)}"  # noqa: S608
        " WHERE pk >= ? AND (pk > ? OR sk > ?) ORDER BY pk, sk LIMIT ?"
    )
    while True:
        rows = source.execute(page, (position.pk, position.pk, position.sk, ROWS)).fetchall()
        if not rows:
            return position
        made.execute("BEGIN IMMEDIATE")
        for _, _, text in rows:
            item, size = checked_values(json.loads(text))
            key = schema.key_of_item(item)
            indexed = schema.indexed_values(item)
            values = (next_revision(), size, type_of(item), encode(item), *key, *indexed)
            made.execute(insert, values)
        position = position._replace(pk=rows[-1][0], sk=rows[-1][1], done=position.done + len(rows))
        _save(made, position)
        progress(position.done)


def _copy_stream(
    source: sqlite3.Connection,
    made: sqlite3.Connection,
    schema: Schema,
    position: _Position,
    progress: Callable[[int], None],
) -> None:
    insert = (
        "INSERT INTO stream(id, event, type, pk, sk, created, new, old)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    while True:
        rows = source.execute(_STREAM, (schema.name, position.record, ROWS)).fetchall()
        if not rows:
            return
        made.execute("BEGIN IMMEDIATE")
        for number, event, *images, created in rows:
            new, old = [
                None if text is None else checked_values(json.loads(text))[0] for text in images
            ]
            image = new or old or {}
            texts = [None if image is None else encode(image) for image in (new, old)]
            key = schema.key_of_item(image)
            made.execute(insert, (number, event, type_of(image), *key, int(created), *texts))
        position = position._replace(record=rows[-1][0], done=position.done + len(rows))
        _save(made, position)
        progress(position.done)


def _save(made: sqlite3.Connection, position: _Position) -> None:
    made.execute("UPDATE conversion SET source = ?, pk = ?, sk = ?, record = ?, done = ?", position)
    made.execute("COMMIT")
