"""The file in a data folder that says how to reach the local server that serves the folder.

The commands of ``local.admin`` read it when the folder is locked, and then work while that server
runs.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import NamedTuple

from local.data_folder import DataFolder

_NAME = "runner.json"


class RunnerRecord(NamedTuple):
    """How to reach a running local server: the content of the file ``runner.json`` in its data
    folder."""

    process: int
    url: str
    """The address of the runner's API."""
    table: str
    """The endpoint of the runner's store, or of the DynamoDB engine that the user runs."""
    artifacts: str | None
    """The folder of the runner's files (artifacts); None if they are in a bucket."""
    system_tables: str | None
    """The folder of the runner's system tables; None if they are in a bucket."""


def write(folder: DataFolder, url: str, table: str) -> None:
    """Writes to the data folder how to reach this process (:class:`RunnerRecord`). The file is
    readable by its owner only. To be called when the local server is ready.
    """
    record = RunnerRecord(
        os.getpid(),
        url,
        table,
        os.environ.get("ARTIFACT_FOLDER"),
        os.environ.get("SYSTEM_TABLES_FOLDER"),
    )
    (folder.path / _NAME).write_text(json.dumps(record._asdict()) + "\n")


def remove(folder: DataFolder) -> None:
    """Removes the file that says how to reach this local server. To be called when the local server
    ends."""
    (folder.path / _NAME).unlink(missing_ok=True)


def read(folder: Path) -> RunnerRecord | None:
    """Returns how to reach the local server that holds the lock of the data folder; None if the
    process with the lock has written no such record, because it is still starting or is another
    command."""
    try:
        fields = json.loads((folder / _NAME).read_text())
        record = RunnerRecord(**fields)
        holder = int((folder / "lock").read_text())
    except (OSError, ValueError, TypeError):
        return None
    return record if record.process == holder else None


def running(folder: Path) -> RunnerRecord | None:
    """Returns how to reach the local server that serves the folder now; None if no process has
    locked the folder, or the one that has locked it has written no record. A killed server leaves
    its record behind, but not its lock.
    """
    record = read(folder)
    if record is None:
        return None
    with (folder / "lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return record
    return None
