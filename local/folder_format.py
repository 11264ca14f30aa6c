"""The format marker of a data folder: an older version refuses a folder that a newer one wrote.

The marker is the file ``format.json`` in the folder, for example ``{"format": 2}``. Format 1 has
its table in the file of a DynamoDB engine, and got its marker later; format 2 has its table in the
folder ``store``.
"""

from __future__ import annotations

import json
from pathlib import Path

FORMAT = 2
"""The format that this version writes. Whoever changes how files of the folder are laid out raises
it, converts older folders at their start, and calls :func:`record` when that is complete."""

_FIRST = 1
_MARKER = "format.json"


class FolderTooNew(Exception):
    """Raised if a newer version of the product wrote the data folder; the message says what to
    do."""


def checked(folder: Path) -> int:
    """Returns the format number of a data folder that this version can open, and writes the marker
    file of a folder that has none. A number below :data:`FORMAT` means that the folder has to be
    converted. Only for the process that holds the lock of the folder.

    Raises:
        FolderTooNew: the folder has a format that this version does not know; nothing was changed.
        OSError: the marker cannot be read or written.
    """
    try:
        text = (folder / _MARKER).read_text()
    except FileNotFoundError:
        is_new = not (folder / "dynamodb.sqlite").exists()
        number = FORMAT if is_new else _FIRST
        record(folder, number)
        return number
    try:
        number = int(json.loads(text)["format"])
    except (ValueError, KeyError, TypeError):
        raise FolderTooNew(
            f"{folder / _MARKER} is no format marker that this version can read; use the version "
            "that wrote this folder, or choose another folder with --data"
        ) from None
    if number > FORMAT:
        raise FolderTooNew(
            f"{folder} was written by a newer version of mlflow-serverless (folder format "
            f"{number}; this version reads up to {FORMAT}). Nothing was changed. Use the newer "
            "version, or choose another folder with --data"
        )
    return number


def record(folder: Path, number: int = FORMAT) -> None:
    """Writes a data folder's format number to its marker file ``format.json``, atomically: after a
    kill the folder has the old marker or the new one."""
    temporary = folder / f"{_MARKER}.new"
    temporary.write_text(json.dumps({"format": number}) + "\n")
    temporary.replace(folder / _MARKER)
