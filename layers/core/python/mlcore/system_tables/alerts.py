"""Alerts over the system tables: a query in a file, and a condition on its answer.

A file is SQL with a line ``-- when: MIN(success_ratio) < 0.9`` in it; its name without ``.sql`` is
the alert's. Files lie in ``alerts/``, beside the tables.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.system_tables.location import store

FOLDER: Final = "alerts"
SUFFIX: Final = ".sql"
_WHEN: Final = re.compile(r"^--\s*when:(.*)$", re.IGNORECASE | re.MULTILINE)
_CONDITION: Final = re.compile(
    r"\s*(MIN|MAX|SUM|AVG|COUNT|FIRST)\s*\(\s*(\w+)\s*\)\s*(<=|>=|!=|=|<|>)\s*(-?[\d.eE+-]+)\s*",
    re.IGNORECASE,
)
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_AGGREGATES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "MIN": min,
    "MAX": max,
    "SUM": math.fsum,
    "AVG": lambda values: math.fsum(values) / len(values),
    "FIRST": lambda values: values[0],
}


class Malformed(ValueError):
    """An alert that cannot be decided, with a sentence that says why."""


class Condition(NamedTuple):
    aggregate: str
    column: str
    comparison: str
    bound: float

    def value(self, answer: Mapping[str, Any]) -> float | None:
        """Of the rows of an answer; None where no row has a number, which meets no condition.

        Raises:
            Malformed: the answer has no such column, or no numbers in it.
        """
        if self.column not in answer["columns"]:
            raise Malformed(f"the query has no column {self.column!r}")
        place = answer["columns"].index(self.column)
        found = [row[place] for row in answer["rows"] if row[place] is not None]
        if self.aggregate == "COUNT":
            return float(len(found))
        try:
            numbers = [float(one) for one in found]
        except (TypeError, ValueError):
            raise Malformed(f"the column {self.column!r} holds other things than numbers") from None
        return _AGGREGATES[self.aggregate](numbers) if numbers else None

    def is_met(self, value: float | None) -> bool:
        return value is not None and _COMPARISONS[self.comparison](value, self.bound)


class Alert(NamedTuple):
    name: str
    sql: str
    condition: Condition


def condition(text: str) -> Condition:
    """
    Raises:
        Malformed: it is not ``AGGREGATE(column) comparison number``.
    """
    found = _CONDITION.fullmatch(text)
    try:
        if found:
            return Condition(found[1].upper(), found[2], found[3], float(found[4]))
    except ValueError:
        pass
    raise Malformed(f"{text.strip()!r} is no condition: write it as MIN(success_ratio) < 0.9")


def when(sql: str) -> str | None:
    """The condition that a query's text names, as it is written."""
    found = _WHEN.search(sql)
    return found[1].strip() if found else None


def of_text(name: str, sql: str) -> Alert:
    """
    Raises:
        Malformed: there is no line ``-- when:``, or what it says is none.
    """
    told = when(sql)
    if told is None:
        raise Malformed("it has no line such as -- when: MIN(success_ratio) < 0.9")
    return Alert(name, sql, condition(told))


def stored() -> Iterator[tuple[str, str]]:
    """Names and texts of the files, by name."""
    for entry in store().list(FOLDER):
        if entry.size is not None and entry.name.endswith(SUFFIX):
            content = store().get(f"{FOLDER}/{entry.name}")
            if content is not None:
                yield entry.name.removesuffix(SUFFIX), content.decode("utf-8", "replace")
