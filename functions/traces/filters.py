"""A first grammar of filters of traces: comparisons of attributes, tags and metadata, joined by
AND."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mlcore.entities import Trace
from mlcore.errors import InvalidParameterValue
from mlcore.repos.trace_pages import LATEST, Window
from traces.names import SOURCE_RUN, TRACE_NAME_TAG

_CLAUSE: Final = re.compile(
    r"""\s*(?P<field>(?:[\w-]+\.)?(?:`[^`]*`|"[^"]*"|[\w.-]+))
        \s*(?P<operator>!=|<=|>=|=|<|>)
        \s*(?P<value>'[^']*'|"[^"]*"|-?[\d.]+)\s*""",
    re.VERBOSE,
)
_AND: Final = re.compile(r"AND\b", re.IGNORECASE)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TIMES: Final = ("timestamp", "timestamp_ms")
_NUMBERS: Final = {
    "execution_time": "execution_duration",
    "execution_time_ms": "execution_duration",
}
_TEXTS: Final[dict[str, Callable[[Trace], str | None]]] = {
    "request_id": lambda trace: trace.trace_id,
    "status": lambda trace: trace.state,
    "client_request_id": lambda trace: trace.client_request_id,
    "name": lambda trace: trace.tags.get(TRACE_NAME_TAG),
}
_MAPS: Final = {
    "tag": "tags",
    "tags": "tags",
    "metadata": "trace_metadata",
    "request_metadata": "trace_metadata",
}


class Filter(NamedTuple):
    window: Window
    tests: tuple[Callable[[Trace], bool], ...]
    run_ids: tuple[str, ...] = ()
    """The runs that the traces must be of, or linked to."""


def parse(text: str) -> Filter:
    """Raises InvalidParameterValue for what is not understood."""
    found = Filter(Window(), ())
    at = 0
    while at < len(text.rstrip()):
        clause = _CLAUSE.match(text, at)
        if clause is None:
            raise InvalidParameterValue(f"Invalid clause(s) in filter string: '{text[at:]}'")
        found = _with(found, clause)
        at = clause.end()
        joined = _AND.match(text, at)
        if joined is None and at < len(text.rstrip()):
            raise InvalidParameterValue(f"Invalid clause(s) in filter string: '{text[at:]}'")
        at = joined.end() if joined else at
    return found


def of_run(trace: Trace, run_id: str, linked: set[str]) -> bool:
    return trace.trace_metadata.get(SOURCE_RUN) == run_id or trace.trace_id in linked


def _with(found: Filter, clause: re.Match[str]) -> Filter:
    kind, _, key = clause["field"].partition(".")
    if not key:
        kind, key = "attribute", kind
    key, value = key.strip('`"'), clause["value"]
    plain = value[1:-1] if value[0] in "'\"" else value
    compare = _COMPARE[clause["operator"]]
    if kind in _MAPS:
        _only_equality(clause)
        name = _MAPS[kind]

        def in_map(trace: Trace) -> bool:
            present = getattr(trace, name).get(key)
            return present is not None and compare(present, plain)

        return found._replace(tests=(*found.tests, in_map))
    if kind not in ("attribute", "attributes", "trace"):
        raise InvalidParameterValue(f"Invalid entity type '{kind}' in filter string.")
    if key in _TIMES:
        return found._replace(window=_narrowed(found.window, clause["operator"], _number(plain)))
    if key in _NUMBERS:
        number = _number(plain)

        def of_number(trace: Trace) -> bool:
            present = getattr(trace, _NUMBERS[key])
            return present is not None and compare(present, number)

        return found._replace(tests=(*found.tests, of_number))
    _only_equality(clause)
    if key == "run_id" and clause["operator"] == "=":
        return found._replace(run_ids=(*found.run_ids, plain))
    if key not in _TEXTS:
        raise InvalidParameterValue(f"Invalid attribute key '{key}' specified.")

    def of_text(trace: Trace) -> bool:
        present = _TEXTS[key](trace)
        return present is not None and compare(present, plain)

    return found._replace(tests=(*found.tests, of_text))


def _only_equality(clause: re.Match[str]) -> None:
    if clause["operator"] not in ("=", "!="):
        raise InvalidParameterValue(
            f"Invalid comparator '{clause['operator']}' for '{clause['field']}'."
        )


def _number(text: str) -> int:
    try:
        return max(-LATEST, min(LATEST, int(float(text))))
    except (ValueError, OverflowError):
        raise InvalidParameterValue(f"Expected a number, got '{text}'.") from None


def _narrowed(window: Window, comparison: str, time: int) -> Window:
    earliest, latest = window
    if comparison in ("=", ">="):
        earliest = max(earliest, time)
    if comparison in ("=", "<="):
        latest = min(latest, time)
    if comparison == ">":
        earliest = max(earliest, time + 1)
    if comparison == "<":
        latest = min(latest, time - 1)
    return Window(earliest, latest)
