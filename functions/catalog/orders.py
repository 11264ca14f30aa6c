"""The orders of models and other entries: by what they all have, or by a property, of theirs or of
their artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final, TypeVar

from catalog.generation import MODELS, Generation
from mlcore.catalog.columns import OWN, PARTS, Column
from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import BOOL, DOUBLE, INT, SUFFIXES, TEXT

T = TypeVar("T")

_OF_ALL: Final[dict[str, Callable[[Entry], Any]]] = {
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


def ordered(
    entries: Iterable[Entry], by: str, *, descending: bool, default: str = "NAME"
) -> list[Entry]:
    """Entries in an order; what is equal is in the order of ids. What lacks its value is last, by
    ascending ids, whichever way the order goes. An order that is not known is the default."""
    value = _value(by, default)
    return _sorted(((value(entry), entry.id, entry) for entry in entries), descending=descending)


def _sorted(found: Iterable[tuple[Any, int, T]], *, descending: bool) -> list[T]:
    having: list[tuple[Any, int, T]] = []
    lacking: list[tuple[Any, int, T]] = []
    for one in found:
        (lacking if one[0] is None else having).append(one)
    having.sort(key=itemgetter(0, 1), reverse=descending)
    lacking.sort(key=itemgetter(1))
    return [one[2] for one in having] + [one[2] for one in lacking]


def _value(by: str, default: str) -> Callable[[Entry], Any]:
    name, _, kind = by.rpartition(".")
    if name and kind in SUFFIXES:
        return lambda entry: _property(entry, name, kind)
    return _OF_ALL.get(by.upper(), _OF_ALL[default])


def _property(entry: Entry, name: str, kind: str) -> Any:
    """The value of a property, if it is of the type; a text is no number."""
    return entry.properties.get(name) if entry.types.get(name) in _types(kind) else None


def _types(kind: str) -> tuple[str, ...]:
    return (TEXT,) if kind == TEXT else _NUMBERS


# ------------------------------------------------------------------ models


def parts_of(by: str, read: Generation) -> list[str]:
    """The parts of a generation that an order of models is about."""
    level, name, kind = _parsed(by)
    if kind:
        return [MODELS, read.properties_part(name)]
    return [MODELS] if name in ("id", "name") else [MODELS, read.attribute_part(level, name)]


def models(read: Generation, by: str, *, descending: bool) -> list[int]:
    """The places of all models in an order, as :func:`ordered` has it. Of artifacts the least value
    counts, the greatest where the order descends."""
    level, name, kind = _parsed(by)
    ids = read.models["id"]
    if name == "name" and not kind:
        places = list(range(len(ids)))  # they are in this order, and equal names in that of ids
        return places[::-1] if descending else places
    columns = _columns(read, level, name, kind) if kind else [read.attribute(level, name)]
    owners = range(len(ids)) if level == OWN else read.owners
    values: list[Any] = [None] * len(ids)
    for column in columns:
        for at, value in zip(column.at, column.values, strict=True):
            owner = owners[at]
            held = values[owner]
            if held is None or (value > held if descending else value < held):
                values[owner] = value
    return _sorted(zip(values, ids, range(len(ids)), strict=True), descending=descending)


def _parsed(by: str) -> tuple[str, str, str]:
    """Whose the value of an order is, its name, and its type: "" for what all models may have."""
    if by.upper() == "ACCURACY":
        by = _ACCURACY
    name, _, kind = by.rpartition(".")
    if name and kind in SUFFIXES:
        if name.startswith(_ARTIFACTS):
            return PARTS, name.removeprefix(_ARTIFACTS), kind
        return OWN, name, kind
    return OWN, _COLUMNS.get(by.upper(), "name"), ""


def _columns(read: Generation, level: str, name: str, kind: str) -> list[Column]:
    columns = read.custom(level, name)
    return [columns[each] for each in _types(kind) if each in columns]
