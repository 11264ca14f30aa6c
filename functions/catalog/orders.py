"""The orders of entries: by what they all have, or by a property, of theirs or of their
artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from mlcore.catalog.entry import Entry
from mlcore.search.filter_query import SUFFIXES, TEXT

_OF_ALL: Final[dict[str, Callable[[Entry], Any]]] = {
    "ID": lambda entry: entry.id,
    "NAME": lambda entry: entry.name,
    "CREATE_TIME": lambda entry: entry.create_time,
    "LAST_UPDATE_TIME": lambda entry: entry.update_time,
}
_ARTIFACTS: Final = "artifacts."
_ACCURACY: Final = "artifacts.overall_average.double_value"


def ordered(
    entries: Iterable[Entry], by: str, *, descending: bool, default: str = "NAME"
) -> list[Entry]:
    """Entries in an order; what lacks its value is last, whichever way, and what is equal is in the
    order of ids. An order that is not known is the default."""
    value = _value(by, default, descending=descending)
    having, lacking = [], []
    for entry in entries:
        found = value(entry)
        if found is None:
            lacking.append(entry)
        else:
            having.append((found, entry.id, entry))
    having.sort(key=lambda one: one[:2], reverse=descending)
    lacking.sort(key=lambda entry: entry.id, reverse=descending)
    return [one[2] for one in having] + lacking


def _value(by: str, default: str, *, descending: bool) -> Callable[[Entry], Any]:
    if by.upper() == "ACCURACY":
        by = _ACCURACY
    name, _, kind = by.rpartition(".")
    if name and kind in SUFFIXES:
        if name.startswith(_ARTIFACTS):
            inner = name.removeprefix(_ARTIFACTS)
            return lambda entry: _best(entry.children, inner, kind, descending=descending)
        return lambda entry: _property(entry, name, kind)
    return _OF_ALL.get(by.upper(), _OF_ALL[default])


def _best(entries: Iterable[Entry], name: str, kind: str, *, descending: bool) -> Any:
    """The least of all artifacts, or the greatest where the order descends."""
    found = [value for entry in entries if (value := _property(entry, name, kind)) is not None]
    if not found:
        return None
    return max(found) if descending else min(found)


def _property(entry: Entry, name: str, kind: str) -> Any:
    """The value of a property, if it is of the type; a text is no number."""
    held = entry.types.get(name)
    if held is None or (held == TEXT) != (kind == TEXT):
        return None
    return entry.properties.get(name)
