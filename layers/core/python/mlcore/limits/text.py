"""Rules about single names, values and ids that several kinds of entities share."""

from __future__ import annotations

import os
import posixpath
import re
from typing import Final

from mlcore.errors import InvalidParameterValue
from mlcore.wire import invalid_value

MAX_KEY_LENGTH: Final = 250

_NAME: Final = re.compile(r"^[/\w.\- :]*$")
_BAD_CHARACTERS: Final = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/)."
)
_RUN_ID: Final = re.compile(r"^[a-zA-Z0-9][\w\-]{0,255}$")


def check_key(key: str, path: str) -> None:
    """The key of a metric, param or tag: a restricted set of characters, and a path that stays what
    it is."""
    if key.isalnum():
        return
    if not _NAME.match(key):
        raise InvalidParameterValue(invalid_value(path, key, _BAD_CHARACTERS))
    check_path(key, path)


def check_path(name: str, path: str) -> None:
    """A name that, taken for a path, stays what it is."""
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


def check_length(what: str, limit: int, value: str) -> None:
    if len(value) > limit:
        raise InvalidParameterValue(f"'{what}' exceeds the maximum length of {limit} characters")


def truncated(what: str, limit: int, value: str) -> str:
    """The value cut to the limit; too long a value is refused when MLFLOW_TRUNCATE_LONG_VALUES is
    off."""
    if len(value) <= limit:
        return value
    if os.environ.get("MLFLOW_TRUNCATE_LONG_VALUES", "true").lower() in ("true", "1"):
        return value[:limit]
    raise InvalidParameterValue(f"'{what}' exceeds the maximum length of {limit} characters")


def check_run_id(run_id: str) -> None:
    """The form of a run id, where MLflow checks it: log-batch and log-inputs."""
    if _RUN_ID.match(run_id) is None:
        raise InvalidParameterValue(invalid_value("run_id", run_id))


def check_max_results(max_results: int, most: int = 50_000) -> None:
    """The page size of searches that take none by default."""
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
