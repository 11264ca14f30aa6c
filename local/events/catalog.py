"""Tells the catalog's loader that its files have changed, which S3 does not do on a laptop."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from local.function import Function
from local.log import report

LOOK_SECONDS = 1.0
STOP_SECONDS = 3.0

Marks = dict[str, tuple[int, int]]


class CatalogWatch:
    """Looks at a folder in a background thread. ``load`` invokes the loader."""

    def __init__(self, folder: Path, load: Callable[[], Any]) -> None:
        self._folder = folder
        self._load = load
        self._known: Marks | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)

    def start(self) -> None:
        """Loads what is there, and starts the thread."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a load at hand may finish."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def look(self) -> None:
        """Calls the loader if a file has changed since the last time; again if it failed."""
        found = marks(self._folder)
        if found == self._known:
            return
        try:
            self._load()
        except Exception as error:
            report("the catalog could not be loaded", error)
        else:
            self._known = found

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.look()


def marks(folder: Path) -> Marks:
    """The files of a folder, each with what changes when it is written."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            try:
                about = file.stat()
            except OSError:
                continue
            found[str(file)] = (about.st_mtime_ns, about.st_size)
    return found


def watch(stack: contextlib.ExitStack, functions: Iterable[Function], folder: Path) -> None:
    """The catalog is loaded before the first request, and whenever its files change, until the
    stack is closed."""
    os.environ["CATALOG_FOLDER"] = str(folder)
    for function in functions:
        if function.definition.handler.startswith("catalog_loader."):
            found = CatalogWatch(folder, partial(function.invoke, {}))
            stack.callback(found.stop)
            found.start()
