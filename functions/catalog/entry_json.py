"""Responses for catalog entries: models, artifacts, MCP servers and tools."""

from __future__ import annotations

from typing import Any

from mlcore.catalog.entry import CatalogEntry, id_of
from mlcore.kubeflow.custom_properties import INT, TYPE


def properties_json(entry: CatalogEntry) -> dict[str, Any]:
    return {name: _property(kind, entry.properties[name]) for name, kind in entry.types.items()}


def _property(member: str, value: Any) -> dict[str, Any]:
    kind = TYPE[member]
    return {"metadataType": kind, member: str(value) if kind == INT else value}


def entry_json(entry: CatalogEntry) -> dict[str, Any]:
    """Returns the JSON of an entry of the model catalog (model, artifact, MCP server or tool): the
    fields that all kinds share, and the entry's own."""
    fields: dict[str, Any] = {"customProperties": properties_json(entry)}
    if entry.create_time is not None:
        fields["createTimeSinceEpoch"] = str(entry.create_time)
    if entry.update_time is not None:
        fields["lastUpdateTimeSinceEpoch"] = str(entry.update_time)
    return {**fields, "id": str(entry.id), "name": entry.name, **entry.fields}


def model_json(entry: CatalogEntry) -> dict[str, Any]:
    return {**entry_json(entry), "source_id": id_of(entry.source)}


def server_json(entry: CatalogEntry, tool_limit: int | None = None) -> dict[str, Any]:
    """Returns the JSON of an MCP server with its first ``tool_limit`` tools; None omits the list of
    tools."""
    fields = {**model_json(entry), "toolCount": len(entry.children)}
    if tool_limit is not None:
        fields["tools"] = [tool_json(child) for child in entry.children[:tool_limit]]
    return fields


def tool_json(entry: CatalogEntry) -> dict[str, Any]:
    """Returns the JSON of a tool of an MCP server in the catalog. Unlike the JSON of other catalog
    entries, it omits empty custom properties."""
    fields = entry_json(entry)
    if not entry.types:
        del fields["customProperties"]
    return fields
