"""Calls the catalog's loader when the files of the model catalog change, as S3's events do in
AWS."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from local.lambda_function import Function
from local.log import report

LOOK_SECONDS = 1.0
STOP_SECONDS = 3.0

FileStates = dict[str, tuple[int, int]]


class CatalogWatch:
    """Checks a folder every second in a background thread. ``load`` invokes the loader."""

    def __init__(self, folder: Path, load: Callable[[], Any]) -> None:
        self._folder = folder
        self._load = load
        self._known: FileStates | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)

    def start(self) -> None:
        """Loads the catalog once and starts the thread that watches the folder."""
        self.check()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a running load gets three seconds to finish."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Calls the loader if a file has changed since its last success."""
        states = file_states(self._folder)
        if states == self._known:
            return
        try:
            self._load()
        except Exception as error:
            report("the catalog could not be loaded", error)
        else:
            self._known = states

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.check()


def file_states(folder: Path) -> FileStates:
    """Returns modification time and size of each file of a folder, by its path."""
    states = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            try:
                about = file.stat()
            except OSError:
                continue
            states[str(file)] = (about.st_mtime_ns, about.st_size)
    return states


def start_watching(
    stack: contextlib.ExitStack, functions: Iterable[Function], folder: Path
) -> None:
    """Starts a watch that calls the loader before the first request and at every change, until the
    stack is closed."""
    os.environ["CATALOG_FOLDER"] = str(folder)
    for function in functions:
        if function.definition.handler.startswith("catalog_loader."):
            watch = CatalogWatch(folder, partial(function.invoke, {}))
            stack.callback(watch.stop)
            watch.start()
