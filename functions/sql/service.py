"""SQL over the system tables: who sees which rows, and what an answer looks like."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from mlcore.policies.system_tables import visible
from mlcore.system_tables import freshness
from sql import child
from sql import messages as m


def query(message: m.Query, request: Request) -> dict[str, Any]:
    """``{"columns", "types", "rows", "truncated"}``, or ``{"text"}`` for CSV.

    Raises:
        InvalidParameterValue: the statement is refused, wrong, or asks too much.
    """
    workspaces = None if request.access is None else visible(request.access)
    if message.fresh:
        freshness.refresh()
    return child.ask(
        {
            "sql": message.sql,
            "parameters": message.parameters or {},
            "workspaces": workspaces,
            "format": message.format or "json",
        }
    )
