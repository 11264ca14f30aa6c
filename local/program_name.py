"""The commands that start the local server and its administration, for help texts and messages."""

from __future__ import annotations

import os
from collections.abc import Mapping

_VARIABLE = "MLFLOW_SERVERLESS_PROGRAM"
"""The environment variable in which the installed command puts its own name; unset in a clone."""


def server(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the command that starts the server: the installed command's name, or ``python -m
    local``.
    """
    return environ.get(_VARIABLE) or "python -m local"


def commands(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the beginning of the command line of ``import``, ``gc`` and other subcommands: the
    installed command's name, or ``.venv/bin/python -m local.admin``.
    """
    return environ.get(_VARIABLE) or ".venv/bin/python -m local.admin"


def in_messages(module: str, environ: Mapping[str, str] = os.environ) -> str:
    """Returns the program's name with which an error message begins: the name of the installed
    command, or in a clone the name of the module (``local`` or ``local.admin``).
    """
    return environ.get(_VARIABLE) or module


def complaint(message: object) -> str:
    """Returns an error message of an administration command with the program's name before it."""
    return f"{in_messages('local.admin')}: {message}"


def mlflow_installation(environ: Mapping[str, str] = os.environ) -> str:
    """Returns a text for the user that says how to install MLflow for this program."""
    if environ.get(_VARIABLE):
        return "pip install 'mlflow-serverless[export]'"
    return "run `make example`"


def sam_installation(environ: Mapping[str, str] = os.environ) -> str:
    """Returns a text for the user that says how to install the SAM CLI."""
    if environ.get(_VARIABLE):
        return "`uv tool install aws-sam-cli` or `pipx install aws-sam-cli` installs it"
    return "`make build` installs it"
