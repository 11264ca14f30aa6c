"""The table's stream read from the engine's file, beside the engine, whose time is for others.

Most records are of items that whoever reads has written himself. Of those that no filter lets
through only the place is told, and nothing is decoded.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any, Final

PAGE_CHARACTERS: Final = 4_000_000
"""A page ends behind so many, whatever its limit is."""

_BUSY_SECONDS = 30.0


class StreamFile:
    """Answers what a client of DynamoDB Streams is asked, in its words, for one table of the file.

    The stream has one shard, named as the engine names it. For one caller at a time.
    """

    def __init__(self, path: Path, table: str, types: Collection[str] | None = None) -> None:
        """``types`` are of the items whose records are told in full; all when it is None."""
        self._path = path
        self._table = table
        marks = ",".join("?" * len(types or ()))
        told = f"type IN ({marks})" if types is not None else "TRUE"
        # The records come in the order in which their transactions ended: the engine numbers them
        # in the transaction, and has one at a time.
        self._page = (
            f"SELECT sequence_number, {told}, event_name, keys_json, new_image, old_image,"  # noqa: S608
            " created_at, user_identity FROM (SELECT *,"
            " json_extract(COALESCE(new_image, old_image), '$.type.S') AS type"
            " FROM _stream_records"
            " WHERE table_name = ? AND CAST(sequence_number AS INTEGER) > ?"
            " ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?)"
        )
        self._types = tuple(types or ())
        self._opened: sqlite3.Connection | None = None

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        """The one shard."""
        return {"StreamDescription": {"Shards": [{"ShardId": f"shardId-00000001-{self._table}"}]}}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        """An iterator is the last number that was read."""
        if asked["ShardIteratorType"] == "LATEST":
            (newest,) = self._connection.execute(
                "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records"
                " WHERE table_name = ?",
                (self._table,),
            ).fetchone()
            return {"ShardIterator": str(newest or 0)}
        return {"ShardIterator": asked.get("SequenceNumber", "0")}

    def get_records(self, *, ShardIterator: str, Limit: int) -> dict[str, Any]:  # noqa: N803
        """A page; ``Ends`` tells whether it is all there is."""
        records: list[dict[str, Any]] = []
        size = 0
        wanted = (*self._types, self._table, int(ShardIterator), Limit)
        # An open cursor would keep the engine from tidying its log.
        with closing(self._connection.execute(self._page, wanted)) as rows:
            for number, told, *rest in rows:
                if told:
                    records.append(_record(number, *rest))
                    size += sum(len(text or "") for text in rest[2:4])
                else:
                    records.append({"dynamodb": {"SequenceNumber": number}})
                if size > PAGE_CHARACTERS:
                    break
        ends = len(records) < Limit and size <= PAGE_CHARACTERS
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else ShardIterator
        return {"Records": records, "NextShardIterator": last, "Ends": ends}

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        return self._opened


def _record(
    number: str,
    event: str,
    keys: str,
    new: str | None,
    old: str | None,
    created: float,
    identity: str | None,
) -> dict[str, Any]:
    """As the engine's GetRecords tells it."""
    told: dict[str, Any] = {"Keys": json.loads(keys)}
    if new is not None:
        told["NewImage"] = json.loads(new)
    if old is not None:
        told["OldImage"] = json.loads(old)
    told |= {
        "SequenceNumber": number,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
        "ApproximateCreationDateTime": float(created),
    }
    record = {
        "eventID": number,
        "eventName": event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "dynamodb": told,
    }
    if identity:
        record["userIdentity"] = json.loads(identity)
    return record
