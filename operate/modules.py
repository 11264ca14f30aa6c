"""The product's own code, loaded when the environment is complete: its modules read it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


class CannotRun(Exception):
    """The message says why."""


def modules() -> tuple[Any, Any]:
    """``indexer.rebuild`` and ``mlcore.errors``."""
    if str(_FUNCTIONS) not in sys.path:
        sys.path.insert(0, str(_FUNCTIONS))
    return import_module("indexer.rebuild"), import_module("mlcore.errors")
