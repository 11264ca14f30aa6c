"""The requests to run SQL and to list who did what (the audit log), and their checks."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message, boolean, intlike, invalid_value, string
from mlcore.wire.checks import CheckFailed

FORMATS = ("json", "csv", "arrow")


def parameters(value: Any) -> None:
    """Checks the parameters of an SQL query. Raises CheckFailed unless they are absent, or an
    object of texts, numbers, booleans and nulls."""
    if value is None:
        return
    if not isinstance(value, dict) or not all(
        item is None or isinstance(item, str | int | float | bool) for item in value.values()
    ):
        raise CheckFailed(invalid_value("parameters", value))


def known_format(value: Any) -> None:
    if value not in (None, *FORMATS):
        raise CheckFailed(invalid_value("format", value, f" Formats: {', '.join(FORMATS)}."))


class Query(Message):
    """The request to run an SQL query: either its text, or the name of a saved query."""

    sql: str
    parameters: Any
    fresh: bool
    format: str
    saved: str
    checks = {
        "sql": (string,),
        "parameters": (parameters,),
        "fresh": (boolean,),
        "format": (string, known_format),
        "saved": (string,),
    }


OUTCOMES = ("done", "refused", "failed")
MOST_ROWS = 200


def known_outcome(value: Any) -> None:
    if value not in (None, "", *OUTCOMES):
        raise CheckFailed(invalid_value("outcome", value, f" Outcomes: {', '.join(OUTCOMES)}."))


def page_size(value: Any) -> None:
    if value is not None and not 1 <= int(value) <= MOST_ROWS:
        raise CheckFailed(invalid_value("max_results", value, f" At most {MOST_ROWS}."))


def milliseconds(value: Any) -> None:
    """Raises CheckFailed unless a time in ms since 1970 lies in the years 1 to 9999, or is None."""
    if value is not None and not -62_135_596_800_000 <= int(value) < 253_402_300_800_000:
        raise CheckFailed


class SearchActivity(Message):
    """The request to list who did what, from the audit. Each set field restricts the result."""

    experiment_id: str
    """Rows about the experiment, and about runs, traces and logged models in it."""
    model: str
    """Rows about the registered model with this name."""
    about_user: str
    """Rows about this user: rights that were given, a password that was changed."""
    user: str
    """Rows of requests that this user made."""
    rpc: str
    """A part of the route's path, such as ``runs/delete``."""
    outcome: str
    since: int
    """Milliseconds since 1970. ``until`` has the same unit; its millisecond is not included."""
    until: int
    max_results: int
    page_token: str
    fresh: bool
    """Publishes the system tables first, if the server can."""
    checks = {
        **dict.fromkeys(("experiment_id", "model", "about_user", "user", "rpc"), (string,)),
        "outcome": (string, known_outcome),
        "since": (intlike, milliseconds),
        "until": (intlike, milliseconds),
        "max_results": (intlike, page_size),
        "page_token": (string,),
        "fresh": (boolean,),
    }
