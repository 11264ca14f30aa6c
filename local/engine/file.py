"""The engine's SQLite file, touched beside the running engine.

Its check, the stream's index, its trimming, expired items.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STREAM_RETENTION_SECONDS = 24 * 3600
"""How long DynamoDB keeps stream records."""

_BUSY_SECONDS = 30.0
_TRIMMED_AT_ONCE = 2000
_EXPIRED_AT_ONCE = 500
_STRING = "S:"
"""What the engine puts before a key that is a string."""


_PROBE_SECONDS = 2.0
_BEGIN_SECONDS = 30.0
"""What the interpreter of a check may take until it begins; a busy machine takes its time."""
_CHECK = """
import signal, sqlite3, sys
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, max(1e-6, float(sys.argv[2])))
try:
    connection = sqlite3.connect(sys.argv[1] + "?mode=ro", uri=True)
    print(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
except sqlite3.OperationalError:
    sys.exit(1)
except sqlite3.DatabaseError as error:
    print(error)
"""
"""Ends itself when its time is over, which begins here: SQLite looks at no clock while it checks.

An operational error is no damage: a disk or a right is missing, which the engine will tell."""

_DAMAGE = ("malformed", "no such table", "not a database", "not a valid SQLite database", "corrupt")
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damage(message: str) -> bool:
    """Whether SQLite's or the engine's words tell of a file whose content is wrong."""
    return any(words in message for words in _DAMAGE)


class EngineFile:
    """One table's view of the file.

    Every write is short: the engine waits for the file's lock, it does not fail.
    """

    def __init__(self, path: Path, table: str) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._table = table

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def damage(self, seconds: float) -> str | None:
        """What SQLite finds wrong with the file, looking no longer than so many seconds; None when
        nothing is, or when there is no file. Changes nothing. For a file that no engine has open.
        """
        if not self.path.exists():
            return None
        asked = [self.path.resolve().as_uri(), str(seconds)]
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _CHECK, *asked],
                timeout=_BEGIN_SECONDS + seconds,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        found = ended.stdout.strip()
        return found if ended.returncode == 0 and found != "ok" else None

    def write_probe(self) -> None:
        """Writes a row of its own, as the engine would write one.

        Raises:
            sqlite3.Error: that is not possible; a file that somebody else writes at this moment is
                none.
        """
        try:
            with contextlib.closing(
                sqlite3.connect(self.path, timeout=_PROBE_SECONDS, isolation_level=None)
            ) as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS _app_probe (id INTEGER PRIMARY KEY, written REAL)"
                )
                connection.execute(
                    "INSERT OR REPLACE INTO _app_probe VALUES (1, ?)", (time.time(),)
                )
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in _LOCKED:
                raise

    def written_at(self) -> float:
        """When the engine last wrote, in seconds since 1970; now when that is unknown."""
        try:
            return self._log.stat().st_mtime
        except OSError:
            return time.time()

    def index_stream(self) -> None:
        """Lets the engine find the last record without reading the whole stream at each write."""
        with self._connection() as connection:
            connection.execute(
                "CREATE INDEX IF NOT EXISTS app_sr_seq"
                " ON _stream_records(table_name, CAST(sequence_number AS INTEGER))"
            )

    def last_record(self) -> int:
        """The sequence number of the newest record of the stream; 0 while there is none."""
        with self._connection() as connection:
            (newest,) = connection.execute(
                "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records"
                " WHERE table_name = ?",
                (self._table,),
            ).fetchone()
        return int(newest or 0)

    def written_last(self, end: int, seconds: int) -> set[tuple[str, str]]:
        """The keys of the items with records of the last seconds before a sequence number, itself
        included."""
        found: set[tuple[str, str]] = set()
        newest = None
        with self._connection() as connection:
            for text, created in connection.execute(
                "SELECT keys_json, created_at FROM _stream_records WHERE table_name = ?"
                " AND CAST(sequence_number AS INTEGER) <= ?"
                " ORDER BY CAST(sequence_number AS INTEGER) DESC",
                (self._table, end),
            ):
                newest = created if newest is None else newest
                if created < newest - seconds:
                    break
                key = json.loads(text)
                found.add((key["PK"]["S"], key["SK"]["S"]))
        return found

    def unread(self, processed: int) -> set[tuple[str, str]]:
        """The keys of the items whose records come after a sequence number."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT DISTINCT keys_json FROM _stream_records WHERE table_name = ?"
                " AND CAST(sequence_number AS INTEGER) > ?",
                (self._table, processed),
            ).fetchall()
        return {(key["PK"]["S"], key["SK"]["S"]) for key in (json.loads(row[0]) for row in rows)}

    def keys_from(self, prefix: str) -> list[tuple[str, str]]:
        """The keys whose sort key begins with a prefix; reads the index of keys, and no item."""
        table = self._table.replace('"', '""')
        stored = _STRING + prefix
        with self._connection() as connection:
            rows = connection.execute(
                f'SELECT pk, sk FROM "{table}" WHERE substr(sk, 1, ?) = ?',  # noqa: S608
                (len(stored), stored),
            ).fetchall()
        return [(pk.removeprefix(_STRING), sk.removeprefix(_STRING)) for pk, sk in rows]

    def trim_stream(self, processed: int, now: float | None = None) -> int:
        """Removes old records up to the sequence number ``processed``; answers how many.

        The newest record stays whatever its age: the engine counts on from it.
        """
        oldest = int((time.time() if now is None else now) - STREAM_RETENTION_SECONDS)
        removed = 0
        with self._connection() as connection:
            while True:
                count = connection.execute(
                    "DELETE FROM _stream_records WHERE id IN ("
                    " SELECT id FROM _stream_records WHERE table_name = ?1"
                    " AND CAST(sequence_number AS INTEGER) <= ?2 AND created_at < ?3"
                    " AND CAST(sequence_number AS INTEGER) < (SELECT"
                    "  MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records"
                    "  WHERE table_name = ?1)"
                    " ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?4)",
                    (self._table, processed, oldest, _TRIMMED_AT_ONCE),
                ).rowcount
                removed += count
                if count < _TRIMMED_AT_ONCE:
                    return removed
                time.sleep(0.05)

    def expired(self, attribute: str, now: float | None = None) -> Iterator[dict[str, Any]]:
        """Items whose ``attribute`` (seconds since 1970) has passed, as DynamoDB JSON."""
        name = json.dumps(attribute)[1:-1].replace('"', '""')
        table = self._table.replace('"', '""')
        due = time.time() if now is None else now
        last: tuple[str, str] = ("", "")
        with self._connection() as connection:
            while True:
                # Pages, so that no reader holds back the file's checkpointing for long.
                rows = connection.execute(
                    f'SELECT pk, sk, item_json FROM "{table}" WHERE (pk, sk) > (?, ?)'  # noqa: S608
                    " AND instr(item_json, ?)"
                    f" AND CAST(json_extract(item_json, '$.\"{name}\".N') AS REAL) < ?"
                    " ORDER BY pk, sk LIMIT ?",
                    (*last, json.dumps(attribute), due, _EXPIRED_AT_ONCE),
                ).fetchall()
                for row in rows:
                    yield json.loads(row[2])
                if len(rows) < _EXPIRED_AT_ONCE:
                    return
                last = rows[-1][:2]
