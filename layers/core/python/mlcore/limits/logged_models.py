"""Rules about logged models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mlcore.errors import BadRequest, InvalidParameterValue

_BAD_CHARACTERS: Final = ("/", ":", ".", "%", '"', "'")


class KeyValue(Protocol):
    """A param or tag as a request has it."""

    key: str
    value: str


def check_name(name: str) -> None:
    """A name that the request gives."""
    if any(character in name for character in _BAD_CHARACTERS):
        raise InvalidParameterValue(
            f"Invalid model name ({name!r}) provided. Model name must be a non-empty string "
            f"and cannot contain the following characters: {_BAD_CHARACTERS}"
        )


def check_params(params: Sequence[KeyValue]) -> dict[str, str]:
    """As in MLflow neither characters nor lengths are checked; a key comes once and is not empty,
    which no map of the table can hold."""
    return _distinct("param", params)


def check_new_tags(tags: Sequence[KeyValue]) -> dict[str, str]:
    """The tags of a new model, each key once."""
    return _distinct("tag", tags)


def check_tags(tags: Sequence[KeyValue]) -> dict[str, str]:
    """Tags of a model that is there: of two with one key the last counts."""
    for tag in tags:
        _check_key("tag", tag.key)
    return {tag.key: tag.value for tag in tags}


def _distinct(what: str, entries: Sequence[KeyValue]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries:
        _check_key(what, entry.key)
        if entry.key in found:
            raise BadRequest(f"The {what} '{entry.key}' is given more than once.")
        found[entry.key] = entry.value
    return found


def _check_key(what: str, key: str) -> None:
    if not key:
        raise BadRequest(f"A {what} needs a key.")
