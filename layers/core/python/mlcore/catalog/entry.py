"""Entries of Kubeflow's catalog and their stored form. An entry is a model with its artifacts, or
an MCP server with its tools (the *children*).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

MODEL: Final = "model"
SERVER: Final = "mcp_server"

ASSET_TYPES: Final = {"models": MODEL, "mcp_servers": SERVER}
"""By the asset type of a source or label, the kind of its entries."""

_IDS: Final = 10**9

_SHOWN_BYTES: Final = 100
"""Estimated bytes by which an entry, and each of its properties, is larger in an answer than in its
stored form."""


class CatalogEntry(NamedTuple):
    kind: str
    source: str
    """The key of the source: :func:`source_key`."""
    id: int
    name: str
    fields: Mapping[str, Any]
    """Values by JSON name: str, bool, int, list or dict. Fields without a value are missing."""
    properties: Mapping[str, Any]
    """Custom properties."""
    types: Mapping[str, str]
    """The type of each custom property: ``string_value``, ``int_value`` …"""
    create_time: int | None
    update_time: int | None
    children: tuple[CatalogEntry, ...] = ()
    """Artifacts of a model, tools of a server."""

    def property(self, name: str) -> tuple[str, Any] | None:
        """Returns (type, value) of a custom property; None without it."""
        kind = self.types.get(name)
        return None if kind is None else (kind, self.properties.get(name))


def source_key(workspace: str, source_id: str) -> str:
    """Returns the unique key of a source of the model catalog. Sources that all workspaces share
    have an empty workspace."""
    return f"{workspace}/{source_id}"


def id_of(key: str) -> str:
    """Returns the id of a model catalog's source from the source's key (:func:`source_key`)."""
    return key.partition("/")[2]


def number_of(*texts: str) -> int:
    """Returns the id of an entry of Kubeflow's catalog, from 1 to 999,999,999: a hash of the texts
    that identify the entry (source, kind, name …), so that reloading the catalog keeps the id."""
    data = "\0".join(texts).encode("utf-8", "surrogatepass")
    return 1 + int.from_bytes(blake2b(data, digest_size=8).digest(), "big") % (_IDS - 1)


class StoredEntry(NamedTuple):
    """The stored form of a model catalog entry: JSON texts of the entry itself (``own``) and of its
    ``children``, which are a model's artifacts or an MCP server's tools."""

    own: str
    """The JSON object of the entry without its children."""
    children: str
    """The JSON array of its children, in order; "" without any."""
    shown: int
    """Approximate size of ``own`` in an answer, in bytes."""

    @property
    def whole(self) -> str:
        """The JSON text of the catalog entry together with its artifacts or tools."""
        return f'{self.own[:-1]},"a":{self.children}}}' if self.children else self.own


def stored(entry: CatalogEntry) -> StoredEntry:
    own = json.dumps({"k": entry.kind, "s": entry.source, **_own(entry)}, separators=(",", ":"))
    shown = len(own) + _SHOWN_BYTES * (1 + len(entry.types))
    children = [_own(child) for child in entry.children]
    return StoredEntry(own, json.dumps(children, separators=(",", ":")) if children else "", shown)


def _own(entry: CatalogEntry) -> dict[str, Any]:
    data: dict[str, Any] = {"i": entry.id, "n": entry.name, "f": entry.fields}
    if entry.types:
        data["p"] = {name: [kind, entry.properties[name]] for name, kind in entry.types.items()}
    if entry.create_time is not None:
        data["c"] = entry.create_time
    if entry.update_time is not None:
        data["u"] = entry.update_time
    return data


def of_stored(data: Mapping[str, Any], children: Iterable[Mapping[str, Any]] = ()) -> CatalogEntry:
    """Makes a catalog entry (a model or an MCP server) from its stored JSON object ``data``.

    Args:
        children: the stored JSON objects of the model's artifacts or the server's tools, if they
            are not in ``data``.
    """
    return _of_own(data["k"], data["s"], data, data.get("a") or children)


def _of_own(
    kind: str, source: str, data: Mapping[str, Any], children: Iterable[Mapping[str, Any]] = ()
) -> CatalogEntry:
    properties = data.get("p", {})
    return CatalogEntry(
        kind,
        source,
        data["i"],
        data["n"],
        data["f"],
        {name: typed_value[1] for name, typed_value in properties.items()},
        {name: typed_value[0] for name, typed_value in properties.items()},
        data.get("c"),
        data.get("u"),
        tuple([_of_own(kind, source, child) for child in children]),
    )
