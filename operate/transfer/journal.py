"""A file of what has been brought over, so that a second run need not read it again.

What counts is the table; without its journal a run only takes longer.
"""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path


class Journal:
    """Lines of JSON, appended as they become true; a line cut short by a kill is skipped.

    Args:
        path: None to remember nothing.
        write: whether anything is added to it.
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
                    told = json.loads(line)
                    if "experiment" in told:
                        self._experiments[told["experiment"]] = told["as"]
                    else:
                        self._done[told["item"]] = told["digest"]
        if not write:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("\n")  # ends a line that was cut short

    def target_of(self, experiment_id: str) -> str | None:
        """The id in the table of an experiment that was made there for one of the server."""
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
        """Whether it was ever brought over."""
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
