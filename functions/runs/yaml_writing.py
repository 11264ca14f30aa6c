"""Writes plain values as YAML 1.1 in block style, without a YAML library.

JSON text would not do: the UI shows these files (MLmodel, conda.yaml) to users as text, and YAML
1.1 readers refuse or misread characters that JSON writes unescaped or as surrogate pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Plain = str | bool | None | Sequence["Plain"] | Mapping[str, "Plain"]

_BARE: Final = re.compile(r"[A-Za-z][\w./=\[\]-]*", re.ASCII)
"""Matches texts that need no quotation marks; the words in :data:`_WORDS` need them
nevertheless."""
_WORDS: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_PRINTABLE: Final = re.compile(r"[ -~]*")
_LONGEST_KEY: Final = 128
"""The most characters of a key on the same line as its value. Readers need not accept more than
1024."""


def dump(value: Plain) -> str:
    """Returns the YAML text of a mapping or list that is not empty. Keys keep their order. The text
    ends with a line break."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Plain) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            key_text = _scalar(key)
            if len(key_text) > _LONGEST_KEY:
                yield f"? {key_text}"
                key_text = ""
            yield from _entry(f"{key_text}:", item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if _is_scalar(item):
                yield f"- {_scalar(item)}"
            else:
                first_line, *other_lines = _lines(item)
                yield f"- {first_line}"
                yield from (f"  {line}" for line in other_lines)


def _entry(start: str, item: Plain) -> Iterator[str]:
    if _is_scalar(item):
        yield f"{start} {_scalar(item)}"
    else:
        yield start
        indent = "  " if isinstance(item, Mapping) else ""
        yield from (indent + line for line in _lines(item))


def _is_scalar(value: Plain) -> bool:
    """Whether the value is written on one line."""
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
    """Escapes a character for a double-quoted text. Characters beyond 16 bits get YAML's own
    escape: JSON writes two surrogates, which YAML readers do not join."""
    if character > "\uffff":
        return f"\\U{ord(character):08X}"
    if character == "\x7f":
        return "\\x7F"
    return json.dumps(character)[1:-1]
