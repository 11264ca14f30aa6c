"""Saved SQL queries as JSON."""

from __future__ import annotations

import math
from typing import Any

from mlcore.entities.saved_queries import QueryParameter, SavedQuery


def saved_query(entity: SavedQuery, *, with_sql: bool = True) -> dict[str, Any]:
    """Returns the JSON of a saved query.

    Args:
        with_sql: whether the JSON contains the query's SQL; lists omit it.
    """
    return {
        "name": entity.name,
        **({"sql": entity.sql} if with_sql else {}),
        "description": entity.description,
        "parameters": [_parameter(parameter) for parameter in entity.parameters],
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
        "creation_time": entity.created_at,
        "last_update_time": entity.last_updated_at,
        "revision": entity.revision,
    }


def _parameter(entity: QueryParameter) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": entity.name, "type": entity.kind}
    if entity.has_default:
        value = entity.default
        if isinstance(value, float) and not math.isfinite(value):
            value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        fields["default"] = value
    return fields
