"""Checks the answer of a scorer's process, which is untrusted: the process may have written
anything.

Only feedback is read from it, as MLflow's server does with the answers of its containers. The
source of the feedback is always code, and a scorer can neither override other assessments nor set
MLflow's own metadata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.wire.json_text import load_json

_RESERVED: Final = "mlflow."
MAX_FEEDBACK: Final = 100
"""Maximum number of pieces of feedback in one judgement."""
MAX_NAME_LENGTH: Final = 250
_MAX_DEPTH: Final = 50
_MAX_ENTRIES: Final = 100
_FIELDS: Final = frozenset(("name", "value", "rationale", "metadata", "source_id", "error"))
_ERROR_FIELDS: Final = frozenset(("error_code", "error_message", "stack_trace"))


class MalformedAnswer(Exception):
    """Raised for a scorer's answer that is no list of feedback."""


class ScorerFeedback(NamedTuple):
    name: str
    value: Any
    """A JSON value."""
    rationale: str | None
    metadata: Mapping[str, str]
    source_id: str
    error: Mapping[str, str | None] | None
    """``error_code``, ``error_message``, ``stack_trace``."""


def parse(answer: bytes) -> tuple[ScorerFeedback, ...]:
    """Returns the feedback in the answer of a scorer's process. Raises MalformedAnswer."""
    try:
        listed = load_json(answer, parse_constant=_refuse_constant)
    except ValueError:
        raise MalformedAnswer("it is not JSON") from None
    if not isinstance(listed, list):
        raise MalformedAnswer("it is not a list")
    if len(listed) > MAX_FEEDBACK:
        raise MalformedAnswer(f"it has more than {MAX_FEEDBACK} pieces of feedback")
    return tuple(map(_feedback, listed))


def _feedback(fields: Any) -> ScorerFeedback:
    if not isinstance(fields, dict) or not _FIELDS.issuperset(fields):
        raise MalformedAnswer("a piece of feedback has other fields than it may have")
    name = _text(fields, "name") or ""
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise MalformedAnswer(f"a name is empty or longer than {MAX_NAME_LENGTH} characters")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict) or len(metadata) > _MAX_ENTRIES:
        raise MalformedAnswer(f"metadata is no object of at most {_MAX_ENTRIES} entries")
    for key in metadata:
        _check_value(key)
        _text(metadata, key)
    value = fields.get("value")
    _check_value(value)
    return ScorerFeedback(
        name=name,
        value=value,
        rationale=_text(fields, "rationale"),
        metadata={key: text for key, text in metadata.items() if not key.startswith(_RESERVED)},
        source_id=_text(fields, "source_id") or name,
        error=_error(fields.get("error")),
    )


def _error(fields: Any) -> dict[str, str | None] | None:
    if fields is None:
        return None
    if not isinstance(fields, dict) or not _ERROR_FIELDS.issuperset(fields):
        raise MalformedAnswer("an error has other fields than it may have")
    texts = {name: _text(fields, name) for name in sorted(_ERROR_FIELDS)}
    if not texts["error_code"]:
        raise MalformedAnswer("an error has no code")
    return texts


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    text = fields.get(name)
    if not (text is None or isinstance(text, str)):
        raise MalformedAnswer(f"'{name[:40]}' is no text")
    _check_value(text)
    return text


def _check_value(value: Any, depth: int = 0) -> None:
    """Checks that a value can be stored: its texts are Unicode, its numbers doubles, its depth
    bounded. Raises MalformedAnswer."""
    if depth > _MAX_DEPTH:
        raise MalformedAnswer(f"a value is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise MalformedAnswer("a text is not Unicode")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            is_double = math.isfinite(float(value))
        except OverflowError:
            is_double = False
        if not is_double:
            raise MalformedAnswer("a number is too large for a double")
    elif isinstance(value, list):
        for each in value:
            _check_value(each, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_value(key, depth)
            _check_value(each, depth + 1)


def _refuse_constant(name: str) -> None:
    raise MalformedAnswer(f"{name} is no JSON number")
