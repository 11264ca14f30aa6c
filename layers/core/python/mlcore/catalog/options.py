"""What a filter can be about: the values that the entries of a source have, the range of their
numbers, and the named queries.

The loader gathers them for each source, so that who answers need only join those of the sources
that a workspace sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlcore.catalog.entry import MODEL, Entry
from mlcore.search.filter_query import DOUBLE, INT, TEXT

_MOST_VALUES: Final = 50
_LONGEST: Final = 100

_FIELDS: Final = ("provider", "license", "maturity", "libraryName", "language", "tasks")
_SERVER: Final = ("provider", "license", "deploymentMode", "tags", "transports")

Options = Mapping[str, Mapping[str, Any]]
"""By field or property: what JSON says of its values."""


class _Values:
    """The values of a field or property, until they are too many or too long to choose from."""

    __slots__ = ("greatest", "least", "texts", "useless")

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.least: float | None = None
        self.greatest: float | None = None
        self.useless = False

    def add(self, value: Any) -> None:
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, str):
                self._add_text(one)
            elif not isinstance(one, bool) and isinstance(one, int | float):
                self._add_number(one)

    def _add_text(self, text: str) -> None:
        if text and not self.useless:
            self.texts.add(text)
            self.useless = len(self.texts) >= _MOST_VALUES or len(text) > _LONGEST

    def _add_number(self, number: float) -> None:
        self.least = number if self.least is None else min(self.least, number)
        self.greatest = number if self.greatest is None else max(self.greatest, number)

    def join(self, data: Mapping[str, Any]) -> None:
        if data["u"]:
            self.useless = True
        for text in data["t"]:
            self._add_text(text)
        for end in data["r"]:
            self._add_number(end)

    def stored(self) -> dict[str, Any]:
        ends = [] if self.least is None else [self.least, self.greatest]
        return {"t": [] if self.useless else sorted(self.texts), "u": self.useless, "r": ends}

    def option(self) -> dict[str, Any] | None:
        if self.least is not None:
            return {"type": "number", "range": {"min": self.least, "max": self.greatest}}
        if self.useless or not self.texts:
            return None
        return {"type": "string", "values": sorted(self.texts)}


def of_entries(kind: str, entries: Iterable[Entry]) -> Options:
    """Of the entries of one source."""
    fields = _FIELDS if kind == MODEL else _SERVER
    found: dict[str, _Values] = {name: _Values() for name in fields}
    for entry in entries:
        for name in fields:
            if (value := entry.fields.get(name)) is not None:
                found[name].add(value)
        _add(found, "", entry)
        for child in entry.children if kind == MODEL else ():
            _add(found, "artifacts.", child)
    return {name: values.stored() for name, values in found.items()}


def _add(found: dict[str, _Values], prefix: str, entry: Entry) -> None:
    for name, kind in entry.types.items():
        if kind in (TEXT, INT, DOUBLE):
            found.setdefault(f"{prefix}{name}.{kind}", _Values()).add(entry.properties[name])


def shown(sources: Iterable[Options], queries: Mapping[str, Any]) -> dict[str, Any]:
    """What requests are told of the options of some sources together."""
    found: dict[str, _Values] = {}
    for options in sources:
        for name, data in options.items():
            found.setdefault(name, _Values()).join(data)
    filters = {
        name: option for name, values in found.items() if (option := values.option()) is not None
    }
    return {"filters": filters, "namedQueries": resolved(queries, filters)}


def resolved(
    queries: Mapping[str, Any], filters: Mapping[str, Any]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Named queries in which ``min`` and ``max`` are the ends of the range of their property."""
    return {
        name: {
            field: {**condition, "value": _end(field, condition.get("value"), filters)}
            for field, condition in query.items()
        }
        for name, query in queries.items()
    }


def _end(field: str, value: Any, filters: Mapping[str, Any]) -> Any:
    if value not in ("min", "max"):
        return value
    for name in (field, f"{field}.{DOUBLE}", f"{field}.{INT}"):
        if "range" in filters.get(name, {}):
            return filters[name]["range"][value]
    return value
