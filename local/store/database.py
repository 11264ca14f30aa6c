"""Manages the connections to a table's SQLite file and lets its writers take turns.

The file is in WAL mode: readers and a writer do not wait for each other. With
``synchronous=NORMAL`` a commit survives the end of the process; after a power failure the last
commits may be lost, each as a whole (https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from local.store.process_lock import ProcessLock
from mlcore.db.failures import NotExecuted, NotSaved

BUSY_SECONDS: Final = 30.0
_ABANDONED_SECONDS: Final = 3600
"""The age from which the draft file of a killed process is removed."""

_STATEMENTS: Final = 300
_CACHE_KILOBYTES: Final = 4000

IDLE_CONNECTIONS: Final = 8
"""How many unused connections are kept for later calls. Each takes two file descriptors and a
cache. Few are needed, because one thread of Python runs at a time."""


_WITHOUT_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""The error codes of a file system that has no hard links."""


class Unusable(BotoCoreError):
    """Raised if SQLite cannot read or write the database file. Its message quotes SQLite's."""

    fmt = "the file {path} cannot be used: {error}"

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(path=path, error=error)


class Untouched(Unusable, NotExecuted):
    """Raised if SQLite failed and nothing of the transaction is in the database file, for example
    because another process locks the file.
    """


class Unwritable(Untouched, NotSaved):
    """Raised if a transaction was not executed because the table's SQLite file cannot be written
    until somebody acts, for example because the disk is full.
    """

    def __init__(self, path: Path, error: Exception, advice: str) -> None:
        super().__init__(path, error)
        self.advice = advice


_CONTINUES: Final = "then repeat the request; the server continues without a restart."

DISK_FULL: Final = f"The disk of the server is full. Make room on it, {_CONTINUES}"

READ_ONLY: Final = (
    f"The data files of the server are read-only. Make them and their folder writable, {_CONTINUES}"
)

_NOT_WRITTEN: Final = (
    "The server cannot write to its disk: a quota, a limit of file sizes, a read-only file or a "
    f"fault of the disk. Its log names the file. Remove the cause, {_CONTINUES}"
)

_ADVICE: Final = {
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    # The last frame of SQLite's log is incomplete, so no reader sees the transaction.
    sqlite3.SQLITE_IOERR_WRITE: _NOT_WRITTEN,
}
"""Advice for callers, by SQLite's error codes that mean: nothing of the transaction is in the file,
and a repetition fails, too, until somebody acts."""

_REFUSALS: Final = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN))
"""SQLite's other error codes that mean that nothing of the transaction is in the file."""


FILE_ADVICE: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), DISK_FULL),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), READ_ONLY),
}
"""Advice for callers, by the system's error codes (``errno``) for other files, for errors that last
until somebody acts."""


def advice_of(error: Exception) -> str | None:
    """Returns advice for the caller if ``error`` says that SQLite has written nothing and cannot
    until somebody acts, for example because the disk is full; None for any other error."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return _ADVICE.get(code) or _ADVICE.get(_primary(error))


def _unusable(path: Path, error: Exception) -> Unusable:
    """Returns the exception to raise for an error of SQLite."""
    advice = advice_of(error)
    if advice is not None:
        return Unwritable(path, error, advice)
    if _primary(error) in _REFUSALS:
        return Untouched(path, error)
    return Unusable(path, error)


def _primary(error: Exception) -> int:
    """Returns the primary error code of an error of SQLite; 0 for any other exception."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


class Connection(sqlite3.Connection):
    """A connection to a SQLite file. If the file may not be written, SQLite opens it for reading
    only; such a connection stays read-only when the file becomes writable."""

    is_read_only = False


class Database:
    """A SQLite file with a pool of connections. Callable from many threads; each call uses a
    connection of its own.
    """

    def __init__(self, path: Path) -> None:
        """Opens an existing file.

        Raises:
            Unusable: the file cannot be opened.
        """
        self.path = path
        self._idle: deque[Connection] = deque()
        self._writing = threading.Lock()
        self._closed = False
        try:
            self._processes = ProcessLock(path.with_name(f"{path.name}-lock"))
            self._idle.append(self._connect())
        except (sqlite3.Error, OSError) as error:
            raise Unusable(path, error) from error

    def row(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Executes a statement and returns its first row; None if it has no rows.

        Raises:
            Unusable: SQLite failed.
        """
        connection = self._take()
        try:
            # Only one row is fetched: each further row would release the interpreter's lock again.
            return connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise _unusable(self.path, error) from error
        finally:
            self._return(connection)

    def write(self, sql: str, values: Sequence[Any]) -> int:
        """Executes one statement in a transaction of its own; returns the number of changed rows.

        Raises:
            Unwritable: the file cannot be written until somebody acts.
            Unusable: SQLite failed.
        """
        with self._turn() as connection:
            return connection.execute(sql, values).rowcount

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Context manager: provides a connection within a transaction. The transaction is committed
        at the end of the block, or rolled back if the block raises. Other writers wait meanwhile.

        Raises:
            Unwritable: the file cannot be written until somebody acts.
            Unusable: SQLite failed.
        """
        with self._turn() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        """Context manager: waits until no other writer is active, in this or another process, then
        provides a connection. A waiting writer holds no connection.

        Raises:
            Unwritable: the file cannot be written until somebody acts.
            Unusable: SQLite failed, or the file is closed.
        """
        try:
            with self._writing:
                if self._closed:
                    raise sqlite3.ProgrammingError("it is closed")
                with self._processes:
                    connection = self._take()
                    try:
                        if connection.is_read_only:
                            connection = self._opened_again(connection)
                        yield connection
                    except sqlite3.Error as error:
                        if _primary(error) == sqlite3.SQLITE_READONLY:
                            connection.is_read_only = True
                        raise
                    finally:
                        self._return(connection)
        except sqlite3.Error as error:
            raise _unusable(self.path, error) from error

    def close(self) -> None:
        """Closes all connections. A running call finishes; a writer that waits for its turn
        fails."""
        self._closed = True
        self._close_idle()
        with self._writing:
            self._processes.close()

    def _close_idle(self) -> None:
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _opened_again(self, former: Connection) -> Connection:
        """Replaces a connection by a new one. The former one is closed afterwards, because the last
        connection that is closed removes SQLite's log, for which a full disk may have no room
        again.
        """
        connection = self._connect()
        former.close()
        return connection

    def _return(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= IDLE_CONNECTIONS:
            connection.close()
            return
        self._idle.append(connection)
        self._close_idle_if_closed()

    def _close_idle_if_closed(self) -> None:
        # close() may have run between the check of _closed and the append.
        if self._closed:
            self._close_idle()

    def _take(self) -> Connection:
        if self._closed:
            raise Unusable(self.path, sqlite3.ProgrammingError("it is closed"))
        try:
            return self._idle.pop()
        except IndexError:
            try:
                return self._connect()
            except sqlite3.Error as error:
                raise _unusable(self.path, error) from error

    def _connect(self) -> Connection:
        connection = connect(self.path)
        connection.is_read_only = not os.access(self.path, os.W_OK)
        try:
            for pragma in ("synchronous=NORMAL", "secure_delete=OFF", "temp_store=MEMORY"):
                connection.execute(f"PRAGMA {pragma}").close()
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KILOBYTES}").close()
        except BaseException:
            connection.close()
            raise
        return connection


def connect(path: Path) -> Connection:
    """Opens a connection to an existing SQLite file. The caller begins and ends transactions.

    Raises:
        sqlite3.Error: the file does not exist or cannot be opened.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
        factory=Connection,
    )


def create(
    path: Path, statements: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]]
) -> None:
    """Creates a SQLite database file that only its owner may read, with tables and first rows. The
    file appears under its name only when it is complete.

    Raises:
        FileExistsError: a file of this name exists already.
        OSError, sqlite3.Error: the file cannot be created.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    for abandoned in path.parent.glob(f"{path.name}.*.new*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - abandoned.stat().st_mtime > _ABANDONED_SECONDS:
                abandoned.unlink()
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
        _publish(draft, path)
    finally:
        remove(draft)


def _publish(draft: Path, path: Path) -> None:
    """Gives the finished draft its final name. Raises FileExistsError if the name is taken."""
    try:
        # If another process was faster, link() fails, whereas rename() would replace its file.
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, "the file exists", str(path)) from error
        draft.replace(path)


def remove(path: Path) -> None:
    """Removes a database file and the files that SQLite and the process lock keep beside it."""
    for ending in ("", "-wal", "-shm", "-lock"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
