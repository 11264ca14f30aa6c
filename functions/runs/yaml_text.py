"""Plain values as YAML in block style, which every reader of YAML 1.1 takes for the same values;
reads none. The layer has no library of YAML for this."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Plain = str | bool | None | Sequence["Plain"] | Mapping[str, "Plain"]

_BARE: Final = re.compile(r"[A-Za-z][\w./=\[\]-]*", re.ASCII)
"""Texts that need no quotation marks, but for those words that mean something."""
_WORDS: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_PRINTABLE: Final = re.compile(r"[ -~]*")
_LONGEST_KEY: Final = 128
"""Of a key on the line of its value; readers must not look further than 1024 characters."""


def dump(value: Plain) -> str:
    """A mapping or a list that is not empty, keys in their order; ends with a line break."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Plain) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            shown = _scalar(key)
            if len(shown) > _LONGEST_KEY:
                yield f"? {shown}"
                shown = ""
            yield from _entry(f"{shown}:", item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if _is_scalar(item):
                yield f"- {_scalar(item)}"
            else:
                first, *others = _lines(item)
                yield f"- {first}"
                yield from (f"  {line}" for line in others)


def _entry(start: str, item: Plain) -> Iterator[str]:
    if _is_scalar(item):
        yield f"{start} {_scalar(item)}"
    else:
        yield start
        indent = "  " if isinstance(item, Mapping) else ""
        yield from (indent + line for line in _lines(item))


def _is_scalar(value: Plain) -> bool:
    """Whether it is written on one line."""
    return not value or isinstance(value, str | bool)


def _scalar(value: Plain) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return "{}" if isinstance(value, Mapping) else "[]"
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if _PRINTABLE.fullmatch(value):
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    """One character between double quotation marks. JSON writes those beyond 16 bits as pairs,
    which YAML does not join."""
    if character > "\uffff":
        return f"\\U{ord(character):08X}"
    if character == "\x7f":
        return "\\x7F"
    return json.dumps(character)[1:-1]
