"""Copies files that the product's artifact proxy serves into the folder of MLflow's own server,
under the same paths."""

from __future__ import annotations

import os
from pathlib import Path

from operate.transfer.files import ROUTE, offered
from operate.transfer.mlflow_client import Server
from operate.transfer.transfer_item import Content, TransferItem


def item(source: Server, stock: Server, path: str, folder: Path) -> TransferItem:
    """Returns the step of an export that copies all artifact files below a path into the folder of
    MLflow's own server. A file that is there with the same name and size is not copied."""

    def write(want: Content, have: Content | None) -> None:
        for name, size in want.items():
            if (have or {}).get(name) != size:
                _copy(source, f"{path}/{name}", folder)

    return TransferItem(
        "files",
        path,
        lambda: dict(offered(source, path, "")),
        lambda: dict(offered(stock, path, "")),
        write,
    )


def _copy(source: Server, path: str, folder: Path) -> None:
    """Downloads a file into the target folder. The file appears under its name only when it is
    complete.

    Raises:
        OSError: the path leads out of the folder, or the file cannot be written.
    """
    target = (folder / path).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise OSError(f"{path} leads out of {folder}")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as incoming:
            for chunk in source.stream(f"{ROUTE}/{path}"):
                incoming.write(chunk)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
