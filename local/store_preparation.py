"""Prepares the SQLite store that replaces DynamoDB on a laptop: creates its folder in the data
folder, checks the table's file, and converts the database of a former DynamoDB engine once."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from local import folder_format, program_name
from local.data_folder import DataFolder
from local.disk_health import damage_message, unwritable_message
from local.events.checkpoints import Checkpoints
from local.log import report
from local.store import migration
from local.store.file_maintenance import TableFile, is_damage
from local.store.store import endpoint_of, is_table_name, table_path

CHECK_SECONDS = 0.7
"""How long SQLite may check the file for damage at the start; enough for some hundred
megabytes."""

_STEPS = 20
_BAR = "█"


class StoreUnusable(Exception):
    """Raised if the local server's store, which stands in for DynamoDB, cannot be opened; the
    message says why and what to do."""


def prepare_store(folder: DataFolder, table: str) -> TableFile:
    """Prepares the table's file in a data folder, and returns it. If the folder holds the database
    of a former DynamoDB engine, converts that once. Checks an existing file for damage. If there is
    no file, it is created later, when the table is. Ensures that the stream does not reuse sequence
    numbers up to which the checkpoints say it was processed.

    Raises:
        StoreUnusable: the table's name is invalid, or a file is damaged, or cannot be read or
            written.
    """
    if not is_table_name(table):
        raise StoreUnusable(f"TABLE_NAME={table} is no name of a table")
    path = table_path(folder.store, table)
    try:
        folder.store.mkdir(mode=0o700, exist_ok=True)
        folder.store.chmod(0o700)
        if not path.exists() and migration.holds(folder.engine_database, table):
            _convert(folder, table, path)
        if not folder.ephemeral:
            folder_format.record(folder.path)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(folder, error) from error
    file = TableFile(path)
    damage = file.damage(CHECK_SECONDS)
    if damage:
        raise StoreUnusable(damage_message(file, damage))
    file.make_private()
    read_only = file.read_only()
    if read_only:
        raise StoreUnusable(
            f"the database file {read_only} is read-only. Make it writable, or choose another "
            "folder with --data"
        )
    try:
        # The checkpoints can be ahead of the file after a power failure, in which its last commits
        # are lost, and after a restore of an older copy of the file.
        if path.exists() and file.reserve_numbers(Checkpoints(folder.checkpoints).highest(table)):
            report(
                f"{path.name} lacks stream records that {folder.checkpoints.name} knows: the last "
                "writes are lost, as after a power cut, or an older copy was put back. `"
                f"{program_name.commands()} verify --all` examines what was derived"
            )
    except sqlite3.DatabaseError as error:
        if is_damage(str(error)):
            raise StoreUnusable(damage_message(file, str(error))) from error
        raise _unusable(folder, error) from error
    except OSError as error:
        raise _unusable(folder, error) from error
    return file


def _unusable(folder: DataFolder, error: Exception) -> StoreUnusable:
    unwritable = unwritable_message([folder.path])
    return StoreUnusable(
        f"the store {folder.store} cannot be used: {error}{f'. {unwritable}' if unwritable else ''}"
    )


def endpoint(folder: DataFolder) -> str:
    """Returns the endpoint URL of the SQLite store, DynamoDB's stand-in, in a data folder."""
    return endpoint_of(folder.store)


def _convert(folder: DataFolder, table: str, path: Path) -> None:
    report(f"{folder.engine_database} is converted to {path}, once; the old file stays as it is")
    progress = _Progress()
    migration.convert(folder.engine_database, table, path, progress.show)
    report(
        "converted. When `python -m local.admin verify --all` finds nothing wrong, "
        f"{folder.engine_database.name} can be removed"
    )


class _Progress:
    """Shows the progress of the conversion: a bar in a terminal; otherwise at most one line for
    each tenth."""

    def __init__(self) -> None:
        self._shown = -1

    def show(self, done: int, total: int) -> None:
        step = _STEPS if done >= total else done * _STEPS // total
        if step <= self._shown:
            return
        self._shown = step
        percent = 100 * step // _STEPS
        if sys.stderr.isatty():
            bar = (_BAR * step).ljust(_STEPS)
            end = "\n" if step == _STEPS else ""
            print(f"\r  {bar} {percent} %", end=end, file=sys.stderr, flush=True)
        elif step % 2 == 0:
            report(f"{percent} % of {total} items and stream records")
