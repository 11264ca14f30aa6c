"""The fields that rules of redaction name: paths such as ``inputs.password`` or ``**.token``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

ANY_DEPTH: Final = "**"
_SEGMENTS: Final = {"*": "[^.]*", ANY_DEPTH: ".*"}
WILDCARDS: Final = frozenset(_SEGMENTS)

Paths = tuple[str, ...]
"""All paths by which rules can name one value, normalized (:func:`normalized`). For example, the
inputs of a span have the paths ``inputs`` and ``mlflow.spaninputs``. Indexes of arrays are not part
of a path."""


def normalized(name: str) -> str:
    """Returns the name of a JSON field in lower case, without ``_`` and ``-``, to compare it with a
    redaction rule: so ``userName``, ``user_name`` and ``User-Name`` are equal."""
    return name.lower().replace("_", "").replace("-", "")


def below(paths: Paths, key: str) -> Paths:
    """Returns the redaction paths of a JSON object's member ``key``, from those of the object."""
    name = normalized(key)
    return tuple(f"{path}.{name}" if path else name for path in paths)


def last_segment(name: str) -> str:
    """Returns the last segment of a JSON member's path, from the member's name: the normalized name
    or, because a name may contain dots, its part after the last dot."""
    return normalized(name).rpartition(".")[2]


class RedactedField(NamedTuple):
    """A field that a redaction rule names, such as ``inputs.*.token``, and the text that replaces
    the values of the field."""

    expression: re.Pattern[str]
    first_segment: str
    last_segment: str
    replacement: str


def parse(text: str, replacement: str) -> RedactedField:
    """Parses a field that a redaction rule names: segments separated by dots, such as
    ``inputs.*.token``. ``*`` stands for any one segment, ``**`` (at most once) for any number of
    segments."""
    segments = normalized(text).split(".")
    expression = ""
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == ANY_DEPTH and not last:
            expression += r"(?:.*\.)?"
        else:
            expression += _SEGMENTS.get(segment, re.escape(segment)) + ("" if last else r"\.")
    return RedactedField(re.compile(expression, re.DOTALL), segments[0], segments[-1], replacement)


def replacement_at(fields: Sequence[RedactedField], paths: Paths) -> str | None:
    """Returns the text that replaces a value with these ``paths``: that of the first redaction rule
    whose field matches a path; None if no rule matches."""
    for field in fields:
        if any(map(field.expression.fullmatch, paths)):
            return field.replacement
    return None
