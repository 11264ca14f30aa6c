"""The installed package: the command ``mlflow-serverless``, a copy of the product in the folder
``product``, and :func:`sql`, which runs a query on a server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sql_client import SqlError, SqlResult, sql

__all__ = ["SqlError", "SqlResult", "sql"]


def __getattr__(name: str) -> Any:
    """Imports the client of :func:`sql` at its first use, because the command does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".sql_client", __name__), name)
