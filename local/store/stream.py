"""Reads the stream of a table: rows that triggers wrote in the transactions of the changes.

The stream has one shard. A sequence number is a row's id. Ids grow in the order of commits, because
SQLite has one writer at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sized
from pathlib import Path
from typing import Any, Final

from local.store.database import Unusable, connect
from local.template_definitions import RecordRequirement

PAGE_CHARACTERS: Final = 4_000_000
"""A page ends when the images of its records exceed this size, even below its limit of records."""

SCANNED_RECORDS: Final = 20_000
"""How many records are scanned for a page at most."""

STATEMENT_RECORDS: Final = 100
"""Records that one statement reads; 80 MB at most."""

_COLUMNS: Final = {"NewImage": "new", "OldImage": "old"}
_TTL: Final = "ttl"
"""The attribute with the time after which DynamoDB removes an item, as in template.yaml."""
_NEWEST: Final = "SELECT max(id) FROM stream"


class StreamReader:
    """Executes the calls of a DynamoDB Streams client on the SQLite file of the local table. It may
    have only one caller at a time.
    """

    def __init__(
        self, path: Path, table: str, requirements: Iterable[RecordRequirement] | None = None
    ) -> None:
        """Args:
        requirements: only stream records that meet one of these are returned; None returns all
        records.
        """
        self._path = path
        self._table = table
        condition, self._condition_values = _sql_condition(requirements)
        self._page = (
            "SELECT group_concat('[' || id || ',\"' || event || '\",' || created || ','"  # noqa: S608
            " || coalesce(new, 'null') || ',' || coalesce(old, 'null') || ']'), sum(length(new)),"
            " sum(length(old)) FROM (SELECT id, event, created, new, old FROM stream"
            f" WHERE id > ? AND id <= ? AND {condition} ORDER BY id LIMIT ?)"
        )
        self._opened: sqlite3.Connection | None = None

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        """Answers DescribeStream for the table's stream, which has one shard."""
        return {"StreamDescription": {"Shards": [{"ShardId": f"shardId-00000001-{self._table}"}]}}

    def get_shard_iterator(self, **parameters: Any) -> dict[str, Any]:
        """Returns an iterator, whose text is the sequence number after which reading begins."""
        if parameters["ShardIteratorType"] == "LATEST":
            return {"ShardIterator": str(self._newest())}
        return {"ShardIterator": parameters.get("SequenceNumber", "0")}

    def get_records(self, *, ShardIterator: str, Limit: int = 1000) -> dict[str, Any]:  # noqa: N803
        """Returns a page of the stream's records that meet this reader's requirements. One call
        searches :data:`SCANNED_RECORDS` records at most. If it searched beyond the last record that
        meets them, the page ends with a record that has only a sequence number: how far it
        searched. The field ``Ends`` says whether it reached the stream's end before a limit.

        Raises:
            Unusable: SQLite cannot read the file.
        """
        begin, newest = int(ShardIterator), self._newest()
        end = min(newest, begin + SCANNED_RECORDS)
        records: list[dict[str, Any]] = []
        position, size, whole = begin, 0, True
        while position < end and whole:
            count = min(STATEMENT_RECORDS, Limit - len(records))
            text, *sizes = self._row(self._page, (position, end, *self._condition_values, count))
            page = [_record(*row) for row in json.loads(f"[{text or ''}]")]
            records += page
            size += sum(filter(None, sizes))
            if len(page) < count:
                break
            position = int(page[-1]["dynamodb"]["SequenceNumber"])
            whole = len(records) < Limit and size <= PAGE_CHARACTERS
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else ShardIterator
        if whole and int(last) < end:
            last = str(end)
            records.append({"dynamodb": {"SequenceNumber": last}})
        return {"Records": records, "NextShardIterator": last, "Ends": whole and end == newest}

    def close(self) -> None:
        """Closes the connection to the table's SQLite file. The next read opens a new one."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _newest(self) -> int:
        return int(self._row(_NEWEST, ())[0] or 0)

    def _row(self, sql: str, values: tuple[Any, ...]) -> Any:
        try:
            if self._opened is None:
                self._opened = connect(self._path)
            return self._opened.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise Unusable(self._path, error) from error


def _sql_condition(requirements: Iterable[RecordRequirement] | None) -> tuple[str, tuple[str, ...]]:
    """Returns the requirements as an SQL condition, and the values of its placeholders."""
    if requirements is None:
        return "TRUE", ()
    conditions, values = [], []
    for events, image, types, present in requirements:
        column = _COLUMNS[image]
        parts = [] if events is None else [f"event IN ({_marks(events)})"]
        values += sorted(events or ())
        # The column has the type of the newest image, so that no JSON is parsed.
        kind = "type" if image == "NewImage" else f"json_extract({column}, '$.type.S')"
        parts.append(f"{column} IS NOT NULL AND {kind} IN ({_marks(types)})")
        values += sorted(types)
        parts += [f"json_type({column}, ?) IS NOT NULL"] * len(present)
        values += [f'$."{attribute}"."{kind}"' for attribute, kind in present]
        conditions.append(f"({' AND '.join(parts)})")
    return f"({' OR '.join(conditions)})", tuple(values)


def _marks(values: Sized) -> str:
    return ",".join("?" * len(values))


def _record(number: int, event: str, created: int, new: Any, old: Any) -> dict[str, Any]:
    """Returns one stream record in the form in which GetRecords returns it."""
    image = new or old
    stream_record: dict[str, Any] = {"Keys": {"PK": image["PK"], "SK": image["SK"]}}
    if new is not None:
        stream_record["NewImage"] = new
    if old is not None:
        stream_record["OldImage"] = old
    stream_record |= {
        "SequenceNumber": str(number),
        "StreamViewType": "NEW_AND_OLD_IMAGES",
        "ApproximateCreationDateTime": float(created),
    }
    record = {
        "eventID": str(number),
        "eventName": event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "dynamodb": stream_record,
    }
    if new is None and _has_expired(old, created):
        record["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    return record


def _has_expired(image: Any, now: int) -> bool:
    """Returns whether an item's expiry time has passed. The stream then reports its deletion as one
    by DynamoDB's time to live. This is nearly always right, because expired items are deleted soon
    and requests seldom delete one before.
    """
    end = image.get(_TTL)
    return end is not None and int(end["N"]) <= now
