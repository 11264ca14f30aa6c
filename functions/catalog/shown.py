"""The JSON of entries."""

from __future__ import annotations

from typing import Any

from mlcore.catalog.entry import Entry, id_of
from mlcore.kubeflow.properties import INT, TYPE


def properties(entry: Entry) -> dict[str, Any]:
    return {name: _property(kind, entry.properties[name]) for name, kind in entry.types.items()}


def _property(member: str, value: Any) -> dict[str, Any]:
    kind = TYPE[member]
    return {"metadataType": kind, member: str(value) if kind == INT else value}


def entry(one: Entry) -> dict[str, Any]:
    """What entries of all kinds have."""
    found: dict[str, Any] = {"customProperties": properties(one)}
    if one.create_time is not None:
        found["createTimeSinceEpoch"] = str(one.create_time)
    if one.update_time is not None:
        found["lastUpdateTimeSinceEpoch"] = str(one.update_time)
    return {**found, "id": str(one.id), "name": one.name, **one.fields}


def sourced(one: Entry) -> dict[str, Any]:
    """A model."""
    return {**entry(one), "source_id": id_of(one.source)}


def server(one: Entry, tools: int | None = None) -> dict[str, Any]:
    """An MCP server, with so many of its tools; None for none."""
    found = {**sourced(one), "toolCount": len(one.children)}
    if tools is not None:
        found["tools"] = [tool(child) for child in one.children[:tools]]
    return found


def tool(one: Entry) -> dict[str, Any]:
    found = entry(one)
    if not one.types:
        del found["customProperties"]
    return found
