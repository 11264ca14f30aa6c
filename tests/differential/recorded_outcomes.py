"""What came of a program that used stock MLflow, in files: for tests in which MLflow's own code
sends the requests, with ids and times that nobody can choose. ``STOCK_ANSWERS`` is that of
:mod:`tests.differential.recorded_answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.differential.recorded_answers import COMMAND, Refused, load, mode, save


def outcome(file: Path, make: Callable[[], Any]) -> Any:
    """Returns the recorded outcome of a file of tests, or what ``make`` returns.

    Args:
        make: uses stock MLflow itself; returns a value of JSON without ids and times.

    Raises:
        Refused: nothing is recorded, or with another MLflow, or MLflow now does something else.
    """
    chosen = mode()
    if chosen == "live":
        return make()
    if chosen == "write":
        value = make()
        save(file, {"outcome": value})
        return value
    recorded = load(file)["outcome"]
    if chosen == "compared" and (value := make()) != recorded:
        command = COMMAND.format(file=file.name)
        raise Refused(f"MLflow does other than recorded: run {command}\n{value!s:.2000}")
    return recorded
