"""Maintains a table's SQLite file while the store uses it: checks it for damage, trims the stream,
finds expired items.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.store.database import connect
from local.store.process_lock import ProcessLock

STREAM_RETENTION_SECONDS = 24 * 3600
"""How long DynamoDB keeps stream records."""

_TRIMMED_AT_ONCE = 2000
_SWEPT_AT_ONCE = 2000
_OLDEST_EXPIRY = 5 * 365.25 * 24 * 3600
_PROBE_SECONDS = 2.0
_BEGIN_SECONDS = 30.0
"""How long the interpreter that checks the file may take to start on a busy machine."""
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
"""The program of a check. It ends itself by an alarm when its time is over, because SQLite's
quick_check cannot be interrupted.
An operational error is no damage: the disk or a permission is the cause, which the store reports.
"""

_DAMAGE = ("malformed", "no such table", "not a database", "corrupt")
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damage(message: str) -> bool:
    """Returns whether an error message of SQLite means that the file's content is damaged."""
    return any(words in message for words in _DAMAGE)


class TableFile:
    """The SQLite file of a DynamoDB table, for maintenance. Its writes are short, because requests
    wait meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}-wal")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = connect(self.path)
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Context manager: waits for other writers, and blocks them while the block runs."""
        lock = ProcessLock(self.path.with_name(f"{self.path.name}-lock"))
        try:
            with lock:
                yield
        finally:
            lock.close()

    def make_private(self) -> None:
        """Restricts the permissions of the SQLite files of the table to their owner, for example
        after a copy."""
        for path in self._files():
            with contextlib.suppress(OSError):
                path.chmod(0o600)

    def read_only(self) -> Path | None:
        """Returns the first existing file of the local table's SQLite database that this process
        may not write; None if it may write all."""
        for path in self._files():
            if path.exists() and not os.access(path, os.W_OK):
                return path
        return None

    def _files(self) -> Iterator[Path]:
        for ending in ("", "-wal", "-shm", "-lock"):
            yield self.path.with_name(self.path.name + ending)

    def damage(self, seconds: float) -> str | None:
        """Checks the file for at most ``seconds`` and returns SQLite's description of the damage;
        None if it finds none or there is no file. Changes nothing.
        """
        if not self.path.exists():
            return None
        arguments = [self.path.resolve().as_uri(), str(seconds)]
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _CHECK, *arguments],
                timeout=_BEGIN_SECONDS + seconds,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        problems = ended.stdout.strip()
        return problems if ended.returncode == 0 and problems != "ok" else None

    def write_probe(self) -> None:
        """Writes a row to an extra SQL table, to test whether the SQLite file can be written.

        Raises:
            sqlite3.Error: the write failed. A lock held by another process does not count as a
                failure.
        """
        try:
            with self._connection() as connection:
                connection.execute(f"PRAGMA busy_timeout={int(_PROBE_SECONDS * 1000)}").close()
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS probe (id INTEGER PRIMARY KEY, written REAL)"
                )
                connection.execute("INSERT OR REPLACE INTO probe VALUES (1, ?)", (time.time(),))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in _LOCKED:
                raise

    def written_at(self) -> float:
        """Returns the time of the last write in seconds since 1970; the current time if it is
        unknown.
        """
        try:
            return self._log.stat().st_mtime
        except OSError:
            return time.time()

    def last_record(self) -> int:
        """Returns the sequence number of the newest stream record; 0 if there is none."""
        with self._connection() as connection:
            (newest,) = connection.execute("SELECT max(id) FROM stream").fetchone()
        return int(newest or 0)

    def reserve_numbers(self, processed: int) -> bool:
        """If the newest stream record has a lower number than ``processed``, the highest that a
        consumer of the stream noted as processed, makes the stream continue after ``processed``.
        Otherwise the consumer would skip the next records. Returns whether this was necessary.

        Raises:
            sqlite3.Error: the file cannot be read or written.
        """
        if self.last_record() >= processed:
            return False
        image = json.dumps({"PK": {"S": "-"}, "SK": {"S": "-"}})
        with self._connection() as connection, self._turn():
            # The record gets the time of the newest one, because keys_written_before counts back
            # from it.
            connection.execute(
                "INSERT INTO stream(id, event, pk, sk, created, old) VALUES (?, 'REMOVE', '-', '-',"
                " coalesce((SELECT created FROM stream ORDER BY id DESC LIMIT 1), ?), ?)",
                (processed, int(time.time()), image),
            )
        return True

    def keys_written_before(self, end: int, seconds: int) -> set[tuple[str, str]]:
        """Returns the keys of the items that were changed by stream records up to the sequence
        number ``end``, in the last ``seconds`` before the newest of these records was written.
        """
        keys: set[tuple[str, str]] = set()
        newest = None
        with self._connection() as connection:
            for pk, sk, created in connection.execute(
                "SELECT pk, sk, created FROM stream WHERE id <= ? ORDER BY id DESC", (end,)
            ):
                newest = created if newest is None else newest
                if created < newest - seconds:
                    break
                keys.add((pk, sk))
        return keys

    def unread_keys(self, processed: int) -> set[tuple[str, str]]:
        """Returns the keys of the items that have records in the table's stream after the sequence
        number ``processed``.
        """
        with self._connection() as connection:
            return set(
                connection.execute("SELECT DISTINCT pk, sk FROM stream WHERE id > ?", (processed,))
            )

    def trim_stream(self, processed: int, now: float | None = None) -> int:
        """Deletes those stream records up to the sequence number ``processed`` that are older than
        a day; returns how many. The newest record stays whatever its age: the next sequence number
        continues from it.
        """
        oldest = int((time.time() if now is None else now) - STREAM_RETENTION_SECONDS)
        removed = 0
        with self._connection() as connection:
            while True:
                with self._turn():
                    count = connection.execute(
                        "DELETE FROM stream WHERE id IN (SELECT id FROM stream WHERE id <= ?"
                        " AND created < ? AND id < (SELECT max(id) FROM stream)"
                        " ORDER BY id LIMIT ?)",
                        (processed, oldest, _TRIMMED_AT_ONCE),
                    ).rowcount
                removed += count
                if count < _TRIMMED_AT_ONCE:
                    return removed
                time.sleep(0.05)

    def expired(self, attribute: str, now: float | None = None) -> Iterator[dict[str, Any]]:
        """Yields the items whose ``attribute`` (seconds since 1970) passed less than five years
        ago, as DynamoDB JSON: "TTL processes won't delete items whose timestamp is five
        years or older in the past" (developer guide, "Using time to live")."""
        path = f"$.{json.dumps(attribute)}.N"
        due = time.time() if now is None else now
        last = 0
        with self._connection() as connection:
            while True:
                # Each statement reads a limited number of rows, whether they match or not, because
                # a long read transaction would delay the checkpoints of SQLite's log.
                (end,) = connection.execute(
                    "SELECT max(id) FROM (SELECT id FROM items WHERE id > ? ORDER BY id LIMIT ?)",
                    (last, _SWEPT_AT_ONCE),
                ).fetchone()
                if end is None:
                    return
                rows = connection.execute(
                    "SELECT data FROM items WHERE id > ? AND id <= ? AND instr(data, ?)"
                    " AND CAST(json_extract(data, ?) AS REAL) < ?"
                    " AND CAST(json_extract(data, ?) AS REAL) > ? ORDER BY id",
                    (last, end, json.dumps(attribute), path, due, path, due - _OLDEST_EXPIRY),
                ).fetchall()
                for (text,) in rows:
                    yield json.loads(text)
                last = end
