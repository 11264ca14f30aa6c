"""Rules about requests to create and change logged models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mlcore.errors import BadRequest, InvalidParameterValue

_BAD_CHARACTERS: Final = ("/", ":", ".", "%", '"', "'")


class KeyValue(Protocol):
    """A param or tag of a logged model, as a request holds it."""

    key: str
    value: str


def check_name(name: str) -> None:
    """Checks the name of a logged model in a request; an empty one is allowed. Raises
    InvalidParameterValue."""
    if any(character in name for character in _BAD_CHARACTERS):
        raise InvalidParameterValue(
            f"Invalid model name ({name!r}) provided. Model name must be a non-empty string "
            f"and cannot contain the following characters: {_BAD_CHARACTERS}"
        )


def check_params(params: Sequence[KeyValue]) -> dict[str, str]:
    """Returns the params of a new logged model as a dict. Raises BadRequest for repeated keys and
    for empty ones, which a DynamoDB map cannot store. As in MLflow, neither characters nor lengths
    are checked."""
    return _distinct("param", params)


def check_new_tags(tags: Sequence[KeyValue]) -> dict[str, str]:
    """Returns the tags of a new logged model as a dict. Raises BadRequest for repeated and empty
    keys."""
    return _distinct("tag", tags)


def check_tags(tags: Sequence[KeyValue]) -> dict[str, str]:
    """Returns the tags to set on an existing logged model as a dict, with the last value of a
    repeated key. Raises BadRequest for an empty key."""
    for tag in tags:
        _check_key("tag", tag.key)
    return {tag.key: tag.value for tag in tags}


def _distinct(noun: str, entries: Sequence[KeyValue]) -> dict[str, str]:
    values: dict[str, str] = {}
    for entry in entries:
        _check_key(noun, entry.key)
        if entry.key in values:
            raise BadRequest(f"The {noun} '{entry.key}' is given more than once.")
        values[entry.key] = entry.value
    return values


def _check_key(noun: str, key: str) -> None:
    if not key:
        raise BadRequest(f"A {noun} needs a key.")
