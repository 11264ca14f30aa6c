"""The table's stream read from the engine's file, beside the engine, whose time is for others.

Most records are of items that whoever reads has written himself. SQLite passes over those that no
filter lets through; nothing of them is decoded, and of the last one the place is told.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sized
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from local.definitions import Admission

PAGE_CHARACTERS: Final = 4_000_000
"""A page ends behind so many, whatever its limit is."""

LOOKED_AT: Final = 20_000
"""Records that a page is sought in. Until it ends the engine cannot tidy its log."""

_IMAGES: Final = {"NewImage": "new_image", "OldImage": "old_image"}
_NEWEST: Final = (
    "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?"
)

_BUSY_SECONDS = 30.0


class StreamFile:
    """Answers what a client of DynamoDB Streams is asked, in its words, for one table of the file.

    The stream has one shard, named as the engine names it. For one caller at a time.
    """

    def __init__(
        self, path: Path, table: str, admissions: Iterable[Admission] | None = None
    ) -> None:
        """``admissions`` are of the records that are told; all when it is None."""
        self._path = path
        self._table = table
        told, self._asked = _told(admissions)
        # The records come in the order in which their transactions ended: the engine numbers them
        # in the transaction, and has one at a time.
        self._page = (
            "SELECT sequence_number, event_name, keys_json, new_image, old_image,"  # noqa: S608
            " created_at, user_identity FROM _stream_records WHERE table_name = ?"
            " AND CAST(sequence_number AS INTEGER) > ? AND CAST(sequence_number AS INTEGER) <= ?"
            f" AND {told} ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?"
        )
        self._opened: sqlite3.Connection | None = None

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        """The one shard."""
        return {"StreamDescription": {"Shards": [{"ShardId": f"shardId-00000001-{self._table}"}]}}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        """An iterator is the last number that was read."""
        if asked["ShardIteratorType"] == "LATEST":
            return {"ShardIterator": str(self._newest())}
        return {"ShardIterator": asked.get("SequenceNumber", "0")}

    def get_records(self, *, ShardIterator: str, Limit: int) -> dict[str, Any]:  # noqa: N803
        """A page of what is told, and behind it the place up to where nothing else is; ``Ends``
        tells whether that is all there is."""
        records: list[dict[str, Any]] = []
        size = 0
        begin, newest = int(ShardIterator), self._newest()
        end = min(newest, begin + LOOKED_AT)
        whole = True
        wanted = (self._table, begin, end, *self._asked, Limit)
        # An open cursor would keep the engine from tidying its log.
        with closing(self._connection.execute(self._page, wanted)) as rows:
            for row in rows:
                records.append(_record(*row))
                size += sum(len(text or "") for text in row[3:5])
                if size > PAGE_CHARACTERS:
                    whole = False
                    break
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else ShardIterator
        whole = whole and len(records) < Limit
        if whole and int(last) < end:
            last = str(end)
            records.append({"dynamodb": {"SequenceNumber": last}})
        return {"Records": records, "NextShardIterator": last, "Ends": whole and end == newest}

    def _newest(self) -> int:
        (newest,) = self._connection.execute(_NEWEST, (self._table,)).fetchone()
        return int(newest or 0)

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        return self._opened


def _told(admissions: Iterable[Admission] | None) -> tuple[str, tuple[str, ...]]:
    """A condition in SQL, and what its marks stand for."""
    if admissions is None:
        return "TRUE", ()
    conditions, asked = [], []
    for events, image, types, present in admissions:
        column = _IMAGES[image]
        parts = [] if events is None else [f"event_name IN ({_marks(events)})"]
        asked += sorted(events or ())
        parts.append(f"json_extract({column}, '$.type.S') IN ({_marks(types)})")
        asked += sorted(types)
        parts += [f"json_type({column}, ?) IS NOT NULL"] * len(present)
        asked += [f'$."{attribute}"."{kind}"' for attribute, kind in present]
        conditions.append(f"({' AND '.join(parts)})")
    return f"({' OR '.join(conditions)})", tuple(asked)


def _marks(values: Sized) -> str:
    return ",".join("?" * len(values))


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
