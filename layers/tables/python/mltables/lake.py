"""The place of the tables, and their files as this machine can read them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from mlcore.system_tables import location

FETCHING: Final = 8
SCRATCH: Final = "SYSTEM_TABLES_SCRATCH"
"""Environment: a folder for copies of files, and for what does not fit into memory."""


class Lake:
    """The tables of this deployment. Files never change once they are written, so a copy of one is
    kept for as long as there is room."""

    def __init__(self) -> None:
        base = os.environ.get(SCRATCH) or Path(tempfile.gettempdir()) / "system-tables"
        self.scratch = Path(base)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.options = _options()

    def uri(self, table: str) -> str:
        return location.table_uri(table)

    def paths(self, table: DeltaTable, files: Sequence[str]) -> list[str]:
        """Where files of a table can be read.

        Args:
            files: as the table's log names them.
        """
        root = table.table_uri.rstrip("/")
        if "://" not in root or root.startswith("file://"):
            return [f"{root.removeprefix('file://')}/{file}" for file in files]
        _, _, key = root.removeprefix("s3://").partition("/")
        kept = self.scratch / "files" / key
        missing = [file for file in files if not (kept / file).is_file()]
        with ThreadPoolExecutor(FETCHING) as pool:
            list(pool.map(lambda file: self._fetch(f"{key}/{file}", kept / file), missing))
        return [str(kept / file) for file in files]

    def forget(self, wanted: Iterable[str] = ()) -> None:
        """Drops the copies of all files but some."""
        keep = set(wanted)
        for path in (self.scratch / "files").rglob("*.parquet"):
            if str(path) not in keep:
                path.unlink(missing_ok=True)

    def room(self) -> int:
        """Bytes that are free for copies."""
        return shutil.disk_usage(self.scratch).free

    def _fetch(self, key: str, target: Path) -> None:
        from mlcore.artifacts.s3 import Bucket  # noqa: PLC0415 -- 120 ms that a folder does not need

        store = location.store()
        if not isinstance(store, Bucket):
            raise TypeError(f"{store!r} has no files to fetch")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                store.fetch(key, file)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _options() -> dict[str, str] | None:
    """What delta-rs needs to know of an endpoint of one's own; all else is in the environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint or os.environ.get(location.FOLDER):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
