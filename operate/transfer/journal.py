"""A file that records the items that an import has transferred, so that a repetition of the import
need not read them from the source again, and the experiments that it created. Whether an item
exists is always read from the table."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path


class Journal:
    """Appends a line of JSON to a file for each item that an import has transferred and for each
    experiment that it creates. A line that a kill cut short is ignored when the file is read.

    Args:
        path: the file; None to record nothing.
        write: whether to append lines.
    """

    def __init__(self, path: Path | None, *, write: bool = True) -> None:
        self._done: dict[str, str] = {}
        self._experiments: dict[str, str] = {}
        self._lock = threading.Lock()
        self._path = path if write else None
        if path is None:
            return
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    entry = json.loads(line)
                    if "experiment" in entry:
                        self._experiments[entry["experiment"]] = entry["as"]
                    else:
                        self._done[entry["item"]] = entry["digest"]
        if not write:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("\n")  # ends a line that was cut short

    def target_of(self, experiment_id: str) -> str | None:
        """Returns the id, in the target's table, of the experiment that an earlier import created
        for this experiment of the source server; None if none did."""
        return self._experiments.get(experiment_id)

    def made(self, target_id: str) -> bool:
        return target_id in self._experiments.values()

    def map(self, experiment_id: str, target_id: str) -> None:
        with self._lock:
            self._experiments[experiment_id] = target_id
        self._append({"experiment": experiment_id, "as": target_id})

    def knows(self, item: str, digest: str) -> bool:
        return self._done.get(item) == digest

    def has(self, item: str) -> bool:
        """Returns whether an earlier import has transferred the item with this key
        (:attr:`TransferItem.known_as`)."""
        return item in self._done

    def add(self, item: str, digest: str) -> None:
        if self.knows(item, digest):
            return
        with self._lock:
            self._done[item] = digest
        self._append({"item": item, "digest": digest})

    def _append(self, entry: dict[str, str]) -> None:
        if self._path is not None:
            with self._lock, self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
