"""Which plans searches took and what they read, as ``mlcore.search`` says itself."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import NamedTuple


class Explained(NamedTuple):
    how: str
    """``all``, ``newest``, or the name of a plan's access or order."""
    experiment_id: str
    runs: int
    """Runs that were read."""
    rows: int
    entries: int
    """Index entries of conditions that were read."""


@contextlib.contextmanager
def explained() -> Iterator[list[Explained]]:
    """The searches of the block, one entry for each experiment."""
    results: list[Explained] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.args, tuple):
                results.append(Explained(*record.args))  # type: ignore[arg-type]

    log = logging.getLogger("mlcore.search")
    handler, level = Collecting(), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield results
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
