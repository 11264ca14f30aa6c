"""A saved query: SQL with a name and typed parameters, shared in a workspace."""

from __future__ import annotations

from typing import Final, NamedTuple

TEXT: Final = "text"
INTEGER: Final = "integer"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
DATE: Final = "date"
TIMESTAMP: Final = "timestamp"

Value = str | int | float | bool | None
"""The value of a parameter. A date is ``2026-01-31``, a timestamp ISO 8601 in UTC."""


class QueryParameter(NamedTuple):
    """A parameter of a saved SQL query. The SQL text refers to it as ``:name``."""

    name: str
    kind: str
    """Its type: one of the constants above."""
    has_default: bool = False
    """Whether a run may leave the parameter out."""
    default: Value = None


class SavedQuery(NamedTuple):
    workspace: str
    name: str
    sql: str
    """Empty in a list."""
    description: str
    parameters: tuple[QueryParameter, ...]
    created_by: str | None
    """The owner; None if nobody was logged in."""
    owner_id: int | None
    """The owner's number, which a later user of the same name does not have."""
    last_updated_by: str | None
    created_at: int
    """Milliseconds since the epoch."""
    last_updated_at: int
    revision: int
    """How often it was written; 0 for a query that is not stored yet."""
