"""How the user calls this program, for help texts and messages."""

from __future__ import annotations

import os
from collections.abc import Mapping

_VARIABLE = "MLFLOW_SERVERLESS_PROGRAM"
"""The installed command sets it to its own name; a clone does not."""


def server(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the command that serves the product."""
    return environ.get(_VARIABLE) or "python -m local"


def commands(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the command that precedes ``import``, ``gc`` and the others."""
    return environ.get(_VARIABLE) or ".venv/bin/python -m local.admin"


def mlflow_installation(environ: Mapping[str, str] = os.environ) -> str:
    """Returns how to install MLflow beside this program."""
    if environ.get(_VARIABLE):
        return "pip install 'mlflow-serverless[export]'"
    return "run `make example`"
