"""Entries of the catalog: a model with its artifacts, an MCP server with its tools; and their form
in the table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

MODEL: Final = "model"
SERVER: Final = "mcp_server"

ASSET_TYPES: Final = {"models": MODEL, "mcp_servers": SERVER}
"""What a source or a label is for, and the entries of such a source."""

_IDS: Final = 10**9

_SHOWN_BYTES: Final = 100
"""That an entry, and each of its properties, takes more where it is shown."""


class Entry(NamedTuple):
    kind: str
    source: str
    """The key of the source: :func:`source_key`."""
    id: int
    name: str
    fields: Mapping[str, Any]
    """By their names in JSON: str, bool, int, list or dict; without those that it has not."""
    properties: Mapping[str, Any]
    """Custom properties."""
    types: Mapping[str, str]
    """What each custom property is: ``string_value``, ``int_value`` …"""
    create_time: int | None
    update_time: int | None
    children: tuple[Entry, ...] = ()
    """Artifacts of a model, tools of a server."""

    def property(self, name: str) -> tuple[str, Any] | None:
        """(type, value) of a custom property."""
        kind = self.types.get(name)
        return None if kind is None else (kind, self.properties.get(name))


def source_key(workspace: str, source_id: str) -> str:
    """What tells a source from all others: one that all workspaces share has none."""
    return f"{workspace}/{source_id}"


def workspace_of(key: str) -> str:
    """The workspace of a source; "" for one that all share."""
    return key.partition("/")[0]


def id_of(key: str) -> str:
    """The id of a source."""
    return key.partition("/")[2]


def number_of(*texts: str) -> int:
    """The id of an entry: a number from 1 to 999,999,999 that its names decide, so that it stays
    when the catalog is loaded anew."""
    data = "\0".join(texts).encode("utf-8", "surrogatepass")
    return 1 + int.from_bytes(blake2b(data, digest_size=8).digest(), "big") % (_IDS - 1)


class Stored(NamedTuple):
    """The form of an entry in the table."""

    own: str
    """A JSON object without what belongs to the entry."""
    children: str
    """A JSON array of that, in order; "" for nothing."""
    shown: int
    """About how many bytes of JSON ``own`` is shown as."""

    @property
    def whole(self) -> str:
        """A JSON object with all."""
        return f'{self.own[:-1]},"a":{self.children}}}' if self.children else self.own


def stored(entry: Entry) -> Stored:
    own = json.dumps({"k": entry.kind, "s": entry.source, **_own(entry)}, separators=(",", ":"))
    shown = len(own) + _SHOWN_BYTES * (1 + len(entry.types))
    children = [_own(child) for child in entry.children]
    return Stored(own, json.dumps(children, separators=(",", ":")) if children else "", shown)


def _own(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {"i": entry.id, "n": entry.name, "f": entry.fields}
    if entry.types:
        data["p"] = {name: [kind, entry.properties[name]] for name, kind in entry.types.items()}
    if entry.create_time is not None:
        data["c"] = entry.create_time
    if entry.update_time is not None:
        data["u"] = entry.update_time
    return data


def of_stored(data: Mapping[str, Any], children: Iterable[Mapping[str, Any]] = ()) -> Entry:
    """An entry from its JSON object, and those of what belongs to it where they are apart."""
    return _of_own(data["k"], data["s"], data, data.get("a") or children)


def _of_own(
    kind: str, source: str, data: Mapping[str, Any], children: Iterable[Mapping[str, Any]] = ()
) -> Entry:
    properties = data.get("p", {})
    return Entry(
        kind,
        source,
        data["i"],
        data["n"],
        data["f"],
        {name: each[1] for name, each in properties.items()},
        {name: each[0] for name, each in properties.items()},
        data.get("c"),
        data.get("u"),
        tuple([_of_own(kind, source, child) for child in children]),
    )
