"""Sorts entries of Kubeflow's catalog by id, name, time or a custom property, and models also by a
custom property of their artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final, TypeVar

from catalog.generations import MODELS, Generation
from mlcore.catalog.entry import CatalogEntry
from mlcore.catalog.property_columns import ARTIFACT_LEVEL, MODEL_LEVEL, Column
from mlcore.search.kubeflow_filter import BOOL, DOUBLE, INT, SUFFIXES, TEXT

T = TypeVar("T")

_ENTRY_KEYS: Final[dict[str, Callable[[CatalogEntry], Any]]] = {
    "ID": lambda entry: entry.id,
    "NAME": lambda entry: entry.name,
    "CREATE_TIME": lambda entry: entry.create_time,
    "LAST_UPDATE_TIME": lambda entry: entry.update_time,
}
_COLUMNS: Final = {
    "ID": "id",
    "NAME": "name",
    "CREATE_TIME": "createTimeSinceEpoch",
    "LAST_UPDATE_TIME": "lastUpdateTimeSinceEpoch",
}
_ARTIFACTS: Final = "artifacts."
_ACCURACY: Final = "artifacts.overall_average.double_value"
_NUMBERS: Final = (INT, DOUBLE, BOOL)


def sort_entries(
    entries: Iterable[CatalogEntry], by: str, *, descending: bool, default: str = "NAME"
) -> list[CatalogEntry]:
    """Returns entries of Kubeflow's catalog, sorted by the value that ``by`` names, then by id.
    Entries without the value come last, by ascending id, in both directions. An unknown ``by``
    counts as ``default``."""
    value = _value(by, default)
    return _sorted(((value(entry), entry.id, entry) for entry in entries), descending=descending)


def _sorted(triples: Iterable[tuple[Any, int, T]], *, descending: bool) -> list[T]:
    """Sorts triples of value, id and item; returns the items."""
    with_value: list[tuple[Any, int, T]] = []
    without_value: list[tuple[Any, int, T]] = []
    for triple in triples:
        (without_value if triple[0] is None else with_value).append(triple)
    with_value.sort(key=itemgetter(0, 1), reverse=descending)
    without_value.sort(key=itemgetter(1))
    return [item for _, _, item in with_value] + [item for _, _, item in without_value]


def _value(by: str, default: str) -> Callable[[CatalogEntry], Any]:
    name, _, kind = by.rpartition(".")
    if name and kind in SUFFIXES:
        return lambda entry: _property(entry, name, kind)
    return _ENTRY_KEYS.get(by.upper(), _ENTRY_KEYS[default])


def _property(entry: CatalogEntry, name: str, kind: str) -> Any:
    """Returns the value of a custom property; None if it is missing, or a string where ``kind`` is
    a type of numbers or the other way round. Numbers and booleans count as one type."""
    return entry.properties.get(name) if entry.types.get(name) in _types(kind) else None


def _types(kind: str) -> tuple[str, ...]:
    return (TEXT,) if kind == TEXT else _NUMBERS


# ------------------------------------------------------------------ models


def required_parts(by: str, generation: Generation) -> list[str]:
    """Returns the names of the stored parts of the model catalog that :func:`sort_models` reads, so
    that they can be fetched together first."""
    level, name, kind = _parse(by)
    if kind:
        return [MODELS, generation.properties_part(name)]
    return [MODELS] if name in ("id", "name") else [MODELS, generation.attribute_part(level, name)]


def sort_models(generation: Generation, by: str, *, descending: bool) -> list[int]:
    """Returns the positions of all models of the catalog, sorted as by :func:`sort_entries`. If
    ``by`` names a property of artifacts, the value of a model is the least value among its
    artifacts, in descending order the greatest."""
    level, name, kind = _parse(by)
    ids = generation.models["id"]
    if name == "name" and not kind:
        positions = list(range(len(ids)))  # models are stored by name, then by id
        return positions[::-1] if descending else positions
    columns = (
        _columns(generation, level, name, kind)
        if kind
        else [generation.attribute_values(level, name)]
    )
    owners = range(len(ids)) if level == MODEL_LEVEL else generation.owners
    values: list[Any] = [None] * len(ids)
    for column in columns:
        for position, value in zip(column.at, column.values, strict=True):
            owner = owners[position]
            best = values[owner]
            if best is None or (value > best if descending else value < best):
                values[owner] = value
    return _sorted(zip(values, ids, range(len(ids)), strict=True), descending=descending)


def _parse(by: str) -> tuple[str, str, str]:
    """Parses ``orderBy``. Returns the level (``MODEL_LEVEL``, or ``ARTIFACT_LEVEL`` for a property
    of artifacts), the name, and the type of a custom property; the type is "" for an attribute that
    all models may have."""
    if by.upper() == "ACCURACY":
        by = _ACCURACY
    name, _, kind = by.rpartition(".")
    if name and kind in SUFFIXES:
        if name.startswith(_ARTIFACTS):
            return ARTIFACT_LEVEL, name.removeprefix(_ARTIFACTS), kind
        return MODEL_LEVEL, name, kind
    return MODEL_LEVEL, _COLUMNS.get(by.upper(), "name"), ""


def _columns(generation: Generation, level: str, name: str, kind: str) -> list[Column]:
    columns = generation.custom_values(level, name)
    return [columns[each] for each in _types(kind) if each in columns]
