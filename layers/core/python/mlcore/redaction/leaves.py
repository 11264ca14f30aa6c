"""Collects the texts inside of JSON values and JSON texts, however deep they are nested.

So a single search can show that no redaction rule matches in any of the texts, which is much
cheaper than redacting each text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

CONTAINERS: Final = ("{", "[", '"')
"""First characters of a JSON text that may contain strings: of an object, an array or a string."""
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_LARGEST_WHOLE: Final = 1e21
"""Floats from here on have more digits than any number for which a rule searches."""


class Leaves(NamedTuple):
    """The parts of JSON values in which redaction rules search: texts, numbers as texts, and the
    names of all members of objects."""

    texts: list[str]
    names: set[str]


def collected(values: Iterable[Any]) -> Leaves:
    """Returns the leaves of JSON values: their texts, numbers and names of members. A string that
    is itself JSON is replaced by its own leaves."""
    texts: list[str] = []
    names: set[str] = set()
    members: list[tuple[str, Any]] = []
    waiting = list(values)
    # Parsing returns no objects: the hook collects their members, also those with equal names.
    parse = json.JSONDecoder(object_pairs_hook=members.extend).decode

    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            inside = _inside(value, parse) if value.lstrip()[:1] in CONTAINERS else None
            if inside is None:
                texts.append(value)
            else:
                waiting += inside
        elif isinstance(value, dict):
            members += value.items()
        elif isinstance(value, list | tuple):
            waiting += value
        elif value is not None and not isinstance(value, bool):
            texts.append(digits(value) if isinstance(value, int | float) else str(value))
        if members:
            names.update([name for name, _ in members])
            waiting += [item for _, item in members]
            members.clear()
    # The spans of a trace often contain the same messages.
    texts = list(dict.fromkeys(texts))
    texts += [unescaped(text) for text in texts if "\\u" in text]
    names.update([unescaped(name) for name in names if "\\u" in name])
    return Leaves(texts, names)


def _inside(text: str, parse: Callable[[str], Any]) -> Iterable[Any] | None:
    """Returns the values inside a JSON text, except the members of objects, which ``parse``
    collects; None if the text is no JSON."""
    if _is_plain_json(text):
        return (text[1:-1],)
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    # A string that is JSON again is parsed again, which removes one level of escapes.
    return (value,) if isinstance(value, str) else value or ()


def _is_plain_json(text: str) -> bool:
    """Whether a text is a JSON string without escapes, so that it need not be parsed. (JSON strings
    have no control characters.)"""
    return (
        len(text) > 1
        and text[0] == '"'
        and text.find('"', 1) == len(text) - 1
        and "\\" not in text
        and text.isprintable()
    )


def unescaped(text: str) -> str:
    """Returns a text with escapes such as ``\\u0061`` replaced by their characters, since the text
    may be a part of a JSON text."""
    decoded = _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def digits(number: float) -> str:
    """Returns a number as text; whole floats as integers, since protobuf's JSON turns an integer
    such as 4111111111111111 into a float. Empty for an integer with too many digits."""
    if isinstance(number, float) and number.is_integer() and abs(number) < _LARGEST_WHOLE:
        return str(int(number))
    try:
        return repr(number)
    except ValueError:  # more digits than Python converts
        return ""
