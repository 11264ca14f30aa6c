"""Checks of single keys, lengths, paths, run ids and page sizes that several modules of request
rules share."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.wire import invalid_value
from mlcore.wire.json_text import parse_json_text

MAX_KEY_LENGTH: Final = 250

_NAME: Final = re.compile(r"[/\w.\- :]*")
_BAD_CHARACTERS: Final = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/)."
)
_RUN_ID: Final = re.compile(r"[a-zA-Z0-9][\w\-]{0,255}")


def check_key(key: str, path: str) -> None:
    """Checks the key of a metric, param or tag: allowed characters, and no path
    (:func:`check_path`). Raises InvalidParameterValue."""
    if key.isalnum():
        return
    if not _NAME.fullmatch(key):
        raise InvalidParameterValue(invalid_value(path, key, _BAD_CHARACTERS))
    check_path(key, path)


def check_path(name: str, path: str) -> None:
    """Checks that a name stays the same when it is used as a relative path: no ``..``, no ``//``,
    no leading ``/``. Raises InvalidParameterValue otherwise.

    Args:
        path: the position of the name in the request, for the message.
    """
    resolved = posixpath.normpath(name)
    if resolved != name or resolved == "." or resolved.startswith(("..", "/")):
        raise InvalidParameterValue(
            invalid_value(
                path,
                name,
                "Names may be treated as files in certain cases, and must not resolve to other "
                f"names when treated as such. This name would resolve to {resolved!r}",
            )
        )


def check_length(noun: str, limit: int, value: str) -> None:
    if len(value) > limit:
        raise InvalidParameterValue(f"'{noun}' exceeds the maximum length of {limit} characters")


def check_text(noun: str, limit: int, value: str) -> None:
    """Raises InvalidParameterValue if a text has a NUL or more than ``limit`` characters."""
    if "\x00" in value:
        raise InvalidParameterValue(f"'{noun}' cannot contain NUL (0x00) characters")
    check_length(noun, limit, value)


def truncated(noun: str, limit: int, value: str) -> str:
    """Returns the value of a param or tag, cut to ``limit`` characters. Raises
    InvalidParameterValue if it is longer and MLFLOW_TRUNCATE_LONG_VALUES is off."""
    if len(value) <= limit:
        return value
    if os.environ.get("MLFLOW_TRUNCATE_LONG_VALUES", "true").lower() in ("true", "1"):
        return value[:limit]
    raise InvalidParameterValue(f"'{noun}' exceeds the maximum length of {limit} characters")


def check_run_id(run_id: str) -> None:
    """Checks the form of a run id. As in MLflow, only log-batch and log-inputs check it. Raises
    InvalidParameterValue."""
    if not may_be_run_id(run_id):
        raise InvalidParameterValue(invalid_value("run_id", run_id))


def may_be_run_id(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def check_max_results(max_results: int, most: int = 50_000) -> None:
    """Checks the page size (``max_results``) of a search: from 1 to ``most``. Raises
    InvalidParameterValue otherwise."""
    if max_results < 1:
        raise InvalidParameterValue(
            f"Invalid value {max_results} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    if max_results > most:
        raise InvalidParameterValue(
            f"Invalid value {max_results} for parameter 'max_results' supplied. "
            f"It must be at most {most}"
        )


def list_in_tag(tags: Mapping[str, str], key: str) -> list[Any]:
    """Returns the list that a tag holds as JSON; empty without the tag. Clients may set any text:
    raises InvalidParameterValue if it is no JSON list."""
    try:
        entries = parse_json_text(tags.get(key, "[]"), lone_surrogates=True)
    except ValueError:
        entries = None
    if not isinstance(entries, list):
        raise InvalidParameterValue(f"The tag '{key}' is not a JSON list, so nothing can be added.")
    return entries
