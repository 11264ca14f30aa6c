"""What came of a program that used stock MLflow, in files: for tests in which MLflow's own code
sends the requests, with ids and times that nobody can choose. ``STOCK_ANSWERS`` is that of
:mod:`tests.differential.recorded_answers`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.differential.recorded_answers import COMMAND, Refused, mode, path_of


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
        recording = {"mlflow": metadata.version("mlflow"), "outcome": value}
        content = json.dumps(recording, ensure_ascii=False).encode()
        path_of(file).write_bytes(lzma.compress(content, preset=9))
        return value
    recorded = _read(file)
    if chosen == "compared" and (value := make()) != recorded:
        command = COMMAND.format(file=file.name)
        raise Refused(f"MLflow does other than recorded: run {command}\n{value!s:.2000}")
    return recorded


def _read(file: Path) -> Any:
    command = COMMAND.format(file=file.name)
    if not path_of(file).exists():
        raise Refused(f"what stock MLflow does in {file.name} is not recorded: run {command}")
    content = json.loads(lzma.decompress(path_of(file).read_bytes()))
    installed = metadata.version("mlflow")
    if content["mlflow"] != installed:
        raise Refused(
            f"the recording of {file.name} is of MLflow {content['mlflow']}, and {installed} is "
            f"installed: run {command}"
        )
    return content["outcome"]
