"""Filter options of the model catalog, from which a user can choose to filter a list: the values
that the entries of a source have, and the ranges of their numbers. Also named queries.

The loader computes them for each source; a request only merges the options of the sources that its
workspace sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlcore.catalog.entry import MODEL, CatalogEntry
from mlcore.search.kubeflow_filter import DOUBLE, INT, TEXT

_MAX_VALUES: Final = 50
_MAX_LENGTH: Final = 100

_MODEL_FIELDS: Final = ("provider", "license", "maturity", "libraryName", "language", "tasks")
_SERVER_FIELDS: Final = ("provider", "license", "deploymentMode", "tags", "transports")

Options = Mapping[str, Mapping[str, Any]]
"""By field or property: its values and ranges as stored JSON."""


class _Values:
    """Collects the values of a field or property. ``unusable`` is set once they are too many or too
    long to choose from."""

    __slots__ = ("greatest", "least", "texts", "unusable")

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.least: float | None = None
        self.greatest: float | None = None
        self.unusable = False

    def add(self, value: Any) -> None:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, str):
                self._add_text(item)
            elif not isinstance(item, bool) and isinstance(item, int | float):
                self._add_number(item)

    def _add_text(self, text: str) -> None:
        if text and not self.unusable:
            self.texts.add(text)
            self.unusable = len(self.texts) >= _MAX_VALUES or len(text) > _MAX_LENGTH

    def _add_number(self, number: float) -> None:
        self.least = number if self.least is None else min(self.least, number)
        self.greatest = number if self.greatest is None else max(self.greatest, number)

    def join(self, data: Mapping[str, Any]) -> None:
        if data["u"]:
            self.unusable = True
        for text in data["t"]:
            self._add_text(text)
        for bound in data["r"]:
            self._add_number(bound)

    def stored(self) -> dict[str, Any]:
        bounds = [] if self.least is None else [self.least, self.greatest]
        return {"t": [] if self.unusable else sorted(self.texts), "u": self.unusable, "r": bounds}

    def option(self) -> dict[str, Any] | None:
        if self.least is not None:
            return {"type": "number", "range": {"min": self.least, "max": self.greatest}}
        if self.unusable or not self.texts:
            return None
        return {"type": "string", "values": sorted(self.texts)}


def of_entries(kind: str, entries: Iterable[CatalogEntry]) -> Options:
    """Returns, for the entries of one source of the model catalog, the values by which each field
    and custom property can be filtered: its texts, and the least and greatest number."""
    fields = _MODEL_FIELDS if kind == MODEL else _SERVER_FIELDS
    values_by_name: dict[str, _Values] = {name: _Values() for name in fields}
    for entry in entries:
        for name in fields:
            if (value := entry.fields.get(name)) is not None:
                values_by_name[name].add(value)
        _add(values_by_name, "", entry)
        for child in entry.children if kind == MODEL else ():
            _add(values_by_name, "artifacts.", child)
    return {name: values.stored() for name, values in values_by_name.items()}


def _add(values_by_name: dict[str, _Values], prefix: str, entry: CatalogEntry) -> None:
    for name, value_type in entry.types.items():
        if value_type in (TEXT, INT, DOUBLE):
            values_by_name.setdefault(f"{prefix}{name}.{value_type}", _Values()).add(
                entry.properties[name]
            )


def response(sources: Iterable[Options], queries: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the filter options and named queries of several sources of the model catalog, as the
    API returns them."""
    values_by_name: dict[str, _Values] = {}
    for options in sources:
        for name, data in options.items():
            values_by_name.setdefault(name, _Values()).join(data)
    filters = {
        name: option
        for name, values in values_by_name.items()
        if (option := values.option()) is not None
    }
    return {"filters": filters, "namedQueries": resolve_queries(queries, filters)}


def resolve_queries(
    queries: Mapping[str, Any], filters: Mapping[str, Any]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the model catalog's named queries (saved filters). A condition's value ``min`` or
    ``max`` is replaced by the bound of the property's range, if it has one."""
    return {
        name: {
            field: {**condition, "value": _bound(field, condition.get("value"), filters)}
            for field, condition in query.items()
        }
        for name, query in queries.items()
    }


def _bound(field: str, value: Any, filters: Mapping[str, Any]) -> Any:
    if value not in ("min", "max"):
        return value
    for name in (field, f"{field}.{DOUBLE}", f"{field}.{INT}"):
        if "range" in filters.get(name, {}):
            return filters[name]["range"][value]
    return value
