"""Imports the product's modules after the environment variables are set, because the modules read
them when they are imported."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


class CannotRun(Exception):
    """Raised if an administration command cannot run; the message says why."""


def load_modules() -> tuple[Any, Any]:
    """Makes the product's modules importable: adds the folder ``functions`` to the import path.
    Returns the modules ``indexer.verification.rebuild`` and ``mlcore.errors``."""
    if str(_FUNCTIONS) not in sys.path:
        sys.path.insert(0, str(_FUNCTIONS))
    return import_module("indexer.verification.rebuild"), import_module("mlcore.errors")
