"""Alerts over the system tables: a query in a file, and a condition on its answer.

A file is SQL with a line ``-- when: MIN(success_ratio) < 0.9`` in it; its name without ``.sql`` is
the alert's. Files lie in ``alerts/``, beside the tables.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mlcore.system_tables.location import store

FOLDER: Final = "alerts"
SUFFIX: Final = ".sql"
_WHEN: Final = re.compile(r"^--\s*when:(.*)$", re.IGNORECASE | re.MULTILINE)
_CONDITION: Final = re.compile(
    r"\s*(MIN|MAX|SUM|AVG|COUNT|FIRST)\s*\(\s*(\w+)\s*\)\s*(<=|>=|!=|=|<|>)"
    r"\s*(-?[\d.eE+-]+|NaN|-?Infinity)\s*",
    re.IGNORECASE,
)
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_END: Final = re.compile(r"(;\s*(--[^\n]*\s*)*)+$")
"""The end of a statement, with the comments that follow."""


class Malformed(ValueError):
    """An alert that cannot be decided, with a sentence that says why."""


class Condition(NamedTuple):
    aggregate: str
    column: str
    comparison: str
    bound: float

    def query(self, sql: str) -> str:
        """A query for the aggregate of all rows of a query, however many they are. NULL is left
        out; NaN is the greatest number."""
        number = f"CAST(`{self.column}` AS DOUBLE)"
        rows = f"FROM (\n{_END.sub('', sql.rstrip())}\n) AS alert_rows"
        if self.aggregate == "COUNT":
            return f"SELECT COUNT(`{self.column}`) AS value {rows}"
        if self.aggregate == "FIRST":
            return f"SELECT {number} AS value {rows} WHERE `{self.column}` IS NOT NULL LIMIT 1"
        return f"SELECT {self.aggregate}({number}) AS value {rows}"

    def value(self, answer: Mapping[str, Any]) -> float | None:
        """The number in the answer to :meth:`query`; None where no row has one, which meets no
        condition."""
        found = answer["rows"][0][0] if answer["rows"] else None
        return None if found is None else float(found)

    def is_met(self, value: float | None) -> bool:
        """Compares as the engine does: NaN equals NaN, and is greater than any other number."""
        if value is None:
            return False
        return _COMPARISONS[self.comparison](_ordered(value), _ordered(self.bound))


def _ordered(number: float) -> tuple[bool, float]:
    """Sorts NaN behind all other numbers."""
    return (True, 0.0) if math.isnan(number) else (False, number)


class Alert(NamedTuple):
    name: str
    sql: str
    condition: Condition


def condition(text: str) -> Condition:
    """
    Raises:
        Malformed: it is not ``AGGREGATE(column) comparison number``, where the number may also be
            ``NaN``, ``Infinity`` or ``-Infinity``.
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
