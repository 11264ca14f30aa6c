"""The connections to a table's SQLite file, and the queue of those who write to it.

The file is in WAL mode: readers and a writer do not wait for each other. ``synchronous=NORMAL``: a
commit survives the end of the process; at a power cut the last commits may be lost, never a part of
one (https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from local.store.process_lock import ProcessLock

BUSY_SECONDS: Final = 30.0
_STATEMENTS: Final = 300
_CACHE_KILOBYTES: Final = 4000


class Unusable(BotoCoreError):
    """SQLite cannot read or write the file. The message has SQLite's own words."""

    fmt = "the file {path} cannot be used: {error}"

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(path=path, error=error)


class Database:
    """A SQLite file; callable from many threads, each of which gets a connection of its own."""

    def __init__(self, path: Path) -> None:
        """Opens an existing file.

        Raises:
            Unusable: it cannot be opened.
        """
        self.path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        self._closed = False
        try:
            self._processes = ProcessLock(path.with_name(f"{path.name}-lock"))
            self._idle.append(self._connect())
        except (sqlite3.Error, OSError) as error:
            raise Unusable(path, error) from error

    def row(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Returns the first row that a statement gives; None if it gives none.

        Raises:
            Unusable: SQLite failed.
        """
        connection = self._take()
        try:
            # One step: each further row would hand over the interpreter's lock once more.
            return connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise Unusable(self.path, error) from error
        finally:
            self._return(connection)

    def write(self, sql: str, values: Sequence[Any]) -> int:
        """Executes one statement in a transaction of its own; returns how many rows it changed.

        Raises:
            Unusable: SQLite failed.
        """
        connection = self._take()
        try:
            with self._writing, self._processes:
                return connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise Unusable(self.path, error) from error
        finally:
            self._return(connection)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Gives a connection in a transaction, which is committed at the end of the block, or
        undone if the block raises. Other writers wait meanwhile.

        Raises:
            Unusable: SQLite failed.
        """
        connection = self._take()
        try:
            with self._writing, self._processes:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise Unusable(self.path, error) from error
        finally:
            self._return(connection)

    def close(self) -> None:
        """Closes the connections. Calls that run now finish; further ones fail."""
        self._closed = True
        while self._idle:
            with contextlib.suppress(IndexError):
                self._idle.pop().close()
        with self._writing:
            self._processes.close()

    def _return(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            try:
                return self._connect()
            except sqlite3.Error as error:
                raise Unusable(self.path, error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path)
        try:
            for pragma in ("synchronous=NORMAL", "secure_delete=OFF", "temp_store=MEMORY"):
                connection.execute(f"PRAGMA {pragma}").close()
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KILOBYTES}").close()
        except BaseException:
            connection.close()
            raise
        return connection


def connect(path: Path) -> sqlite3.Connection:
    """Opens a connection to an existing file, with transactions under the caller's control.

    Raises:
        sqlite3.Error: there is no such file, or it cannot be opened.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )


def create(
    path: Path, statements: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]]
) -> None:
    """Makes a file that only its owner may read, with tables and first rows; all or nothing.

    Raises:
        FileExistsError: somebody else has made it.
        OSError, sqlite3.Error: it cannot be made.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    if path.exists():
        raise FileExistsError(errno.EEXIST, "the file exists", str(path))
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    try:
        with contextlib.closing(connect(draft)) as connection:
            connection.execute("PRAGMA journal_mode=WAL").close()
            connection.execute("BEGIN IMMEDIATE")
            for statement in statements:
                connection.execute(statement)
            for statement, values in rows:
                connection.execute(statement, values)
            connection.execute("COMMIT")
        draft.replace(path)
    finally:
        remove(draft)


def remove(path: Path) -> None:
    """Removes a database file and those that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-lock"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
