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


def in_messages(module: str, environ: Mapping[str, str] = os.environ) -> str:
    """Returns the name that an error message begins with: the installed command's, else that of the
    module (``local`` or ``local.admin``) which a clone runs."""
    return environ.get(_VARIABLE) or module


def complaint(message: object) -> str:
    """Returns a message of a command of ``operate``, after the program's name."""
    return f"{in_messages('local.admin')}: {message}"


def mlflow_installation(environ: Mapping[str, str] = os.environ) -> str:
    """Returns how to install MLflow beside this program."""
    if environ.get(_VARIABLE):
        return "pip install 'mlflow-serverless[export]'"
    return "run `make example`"


def sam_installation(environ: Mapping[str, str] = os.environ) -> str:
    """Returns how to install the SAM CLI."""
    if environ.get(_VARIABLE):
        return "`uv tool install aws-sam-cli` or `pipx install aws-sam-cli` installs it"
    return "`make build` installs it"
