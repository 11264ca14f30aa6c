"""Collects the texts inside of JSON values and JSON texts, however deep they are nested.

So one search of all of them can say that no rule matches anywhere, which is much cheaper than to
redact each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

CONTAINERS: Final = ("{", "[", '"')
"""How a JSON text begins that may contain a text."""
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_LARGEST_WHOLE: Final = 1e21
"""From here on a float has more digits than any number that a rule looks for."""


class Leaves(NamedTuple):
    """What a value contains: its texts and numbers, as rules search them, and the names of all
    members of its objects."""

    texts: list[str]
    names: set[str]


def collected(values: Iterable[Any]) -> Leaves:
    """Returns the leaves of JSON values. A text that is JSON stands for what it contains."""
    texts: list[str] = []
    names: set[str] = set()
    members: list[tuple[str, Any]] = []
    waiting = list(values)
    # Objects vanish from a parsed value: their members are collected, also both of two that have
    # the same name.
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
    # The spans of a trace often repeat the messages of one another.
    texts = list(dict.fromkeys(texts))
    texts += [unescaped(text) for text in texts if "\\u" in text]
    names.update([unescaped(name) for name in names if "\\u" in name])
    return Leaves(texts, names)


def _inside(text: str, parse: Callable[[str], Any]) -> Iterable[Any] | None:
    """Returns the values inside of a JSON text, but for members of objects, which ``parse``
    collects; None if the text is no JSON."""
    if _is_plain_json(text):
        return (text[1:-1],)
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    # A text in a text: its escapes are one level less deep.
    return (value,) if isinstance(value, str) else value or ()


def _is_plain_json(text: str) -> bool:
    """Whether a text is the JSON of a text without escapes, which need not be parsed. JSON has no
    control characters in texts."""
    return (
        len(text) > 1
        and text[0] == '"'
        and text.find('"', 1) == len(text) - 1
        and "\\" not in text
        and text.isprintable()
    )


def unescaped(text: str) -> str:
    """Returns a text that is perhaps a part of a JSON text, with the characters in place of escapes
    such as ``\\u0061``."""
    decoded = _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def digits(number: float) -> str:
    """Returns the digits of a number; protobuf's JSON makes 4111111111111111 a float."""
    if isinstance(number, float) and number.is_integer() and abs(number) < _LARGEST_WHOLE:
        return str(int(number))
    try:
        return repr(number)
    except ValueError:  # more digits than Python converts
        return ""
