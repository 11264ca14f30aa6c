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
    """Checks the folder of the model catalog every second in a background thread. If a file has
    changed, ``load`` is called, which invokes the function that loads the catalog."""

    def __init__(self, folder: Path, load: Callable[[], Any]) -> None:
        self._folder = folder
        self._load = load
        self._known: FileStates | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)

    def start(self) -> None:
        """Loads the model catalog once and starts the thread that watches the folder of its
        files."""
        self.check()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a running load of the model catalog gets three seconds to finish."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Calls the model catalog's loader if a file of the catalog's folder has changed since the
        loader's last success."""
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
    """Returns modification time and size of each file in a folder and its subfolders, by the file's
    path."""
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
    """Loads the model catalog now, by the function of the template that loads it, and again
    whenever a file of the folder changes, until ``stack`` is closed."""
    os.environ["CATALOG_FOLDER"] = str(folder)
    for function in functions:
        if function.definition.handler.startswith("catalog_loader."):
            watch = CatalogWatch(folder, partial(function.invoke, {}))
            stack.callback(watch.stop)
            watch.start()
