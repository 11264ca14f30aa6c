"""Entries of the catalog: a model with its artifacts, an MCP server with its tools; and their form
in the table.

A process that answers for the catalog holds all entries. Fields and properties of one form share
its names, so that 10,000 models with 100,000 artifacts take about 240 MB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

MODEL: Final = "model"
SERVER: Final = "mcp_server"

ASSET_TYPES: Final = {"models": MODEL, "mcp_servers": SERVER}
"""What a source or a label is for, and the entries of such a source."""

_LONG: Final = 1000
"""Characters from which on a text is held compressed."""

_IDS: Final = 10**9

Form = Mapping[str, int]
"""Names, and where the value of each is."""

Forms = dict[tuple[str, ...], Form]
"""Those that have been met, while a generation is read."""


class Values(Mapping[str, Any]):
    """A mapping of few names to values, as small as it can be."""

    __slots__ = ("_form", "_values")

    def __init__(self, form: Form, values: tuple[Any, ...]) -> None:
        self._form = form
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values[self._form[name]]
        return zlib.decompress(value).decode() if type(value) is bytes else value

    def get(self, name: str, default: Any = None) -> Any:
        at = self._form.get(name)
        if at is None:
            return default
        value = self._values[at]
        return zlib.decompress(value).decode() if type(value) is bytes else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._form)

    def __len__(self) -> int:
        return len(self._form)


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


def stored(entry: Entry) -> dict[str, Any]:
    """The JSON object of an entry in the table."""
    data: dict[str, Any] = {"i": entry.id, "n": entry.name, "f": dict(entry.fields)}
    if entry.types:
        data["p"] = {name: [kind, entry.properties[name]] for name, kind in entry.types.items()}
    if entry.create_time is not None:
        data["c"] = entry.create_time
    if entry.update_time is not None:
        data["u"] = entry.update_time
    if entry.children:
        data["a"] = [stored(child) for child in entry.children]
    return data


def of_stored(kind: str, source: str, data: Mapping[str, Any], forms: Forms) -> Entry:
    """An entry from its JSON object; the forms that it has are shared with others."""
    properties = data.get("p", {})
    types = {name: each[0] for name, each in properties.items()}
    return Entry(
        kind,
        source,
        data["i"],
        data["n"],
        compact(data["f"], forms),
        compact({name: each[1] for name, each in properties.items()}, forms),
        compact(types, forms),
        data.get("c"),
        data.get("u"),
        tuple([of_stored(kind, source, child, forms) for child in data.get("a", ())]),
    )


def compact(data: Mapping[str, Any], forms: Forms) -> Mapping[str, Any]:
    names = tuple(data)
    form = forms.get(names)
    if form is None:
        form = forms[names] = {name: at for at, name in enumerate(names)}
    return Values(form, tuple([_held(value) for value in data.values()]))


def _held(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        return zlib.compress(value.encode(), 3)
    return value
