"""What a filter can be about: the values that entries have, the range of their numbers, and the
named queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import DOUBLE, INT, TEXT

_MOST_VALUES: Final = 50
_LONGEST: Final = 100

_MODEL: Final = ("provider", "license", "maturity", "libraryName", "language", "tasks")
_SERVER: Final = ("provider", "license", "deploymentMode", "tags", "transports")


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
                if one and not self.useless:
                    self.texts.add(one)
                    self.useless = len(self.texts) >= _MOST_VALUES or len(one) > _LONGEST
            elif not isinstance(one, bool) and isinstance(one, int | float):
                self.least = one if self.least is None else min(self.least, one)
                self.greatest = one if self.greatest is None else max(self.greatest, one)

    def option(self) -> dict[str, Any] | None:
        if self.least is not None:
            return {"type": "number", "range": {"min": self.least, "max": self.greatest}}
        if self.useless or not self.texts:
            return None
        return {"type": "string", "values": sorted(self.texts)}


def of_models(entries: Iterable[Entry], queries: Mapping[str, Any]) -> dict[str, Any]:
    return _options(entries, _MODEL, queries)


def of_servers(entries: Iterable[Entry], queries: Mapping[str, Any]) -> dict[str, Any]:
    return _options(entries, _SERVER, queries, parts=False)


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


def _options(
    entries: Iterable[Entry],
    fields: tuple[str, ...],
    queries: Mapping[str, Any],
    *,
    parts: bool = True,
) -> dict[str, Any]:
    found: dict[str, _Values] = {name: _Values() for name in fields}
    for entry in entries:
        for name in fields:
            if (value := entry.fields.get(name)) is not None:
                found[name].add(value)
        _add(found, "", entry)
        for child in entry.children if parts else ():
            _add(found, "artifacts.", child)
    filters = {
        name: option for name, values in found.items() if (option := values.option()) is not None
    }
    return {"filters": filters, "namedQueries": resolved(queries, filters)}


def _add(found: dict[str, _Values], prefix: str, entry: Entry) -> None:
    for name, kind in entry.types.items():
        if kind in (TEXT, INT, DOUBLE):
            found.setdefault(f"{prefix}{name}.{kind}", _Values()).add(entry.properties[name])
