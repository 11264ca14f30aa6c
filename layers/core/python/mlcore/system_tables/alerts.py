"""Alerts over the system tables: an SQL query in a file, and a condition on its result.

The file holds SQL with a line such as ``-- when: MIN(success_ratio) < 0.9``. Its name without
``.sql`` is the alert's name. Alert files are stored in ``alerts/``, next to the tables.
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
    """Raised for an alert file without a valid condition; the message explains the fault."""


class Condition(NamedTuple):
    aggregate: str
    column: str
    comparison: str
    bound: float

    def query(self, sql: str) -> str:
        """Returns SQL that aggregates all rows of the alert's query into one number. NULL is
        ignored; NaN counts as the greatest number."""
        number = f"CAST(`{self.column}` AS DOUBLE)"
        rows = f"FROM (\n{_END.sub('', sql.rstrip())}\n) AS alert_rows"
        if self.aggregate == "COUNT":
            return f"SELECT COUNT(`{self.column}`) AS value {rows}"
        if self.aggregate == "FIRST":
            return f"SELECT {number} AS value {rows} WHERE `{self.column}` IS NOT NULL LIMIT 1"
        return f"SELECT {self.aggregate}({number}) AS value {rows}"

    def value(self, answer: Mapping[str, Any]) -> float | None:
        """Returns the number in the answer to :meth:`query`; None without rows or for NULL. None
        never meets a condition."""
        number = answer["rows"][0][0] if answer["rows"] else None
        return None if number is None else float(number)

    def is_met(self, value: float | None) -> bool:
        """Whether the value meets the condition. Compares as the query engine does: NaN equals NaN,
        and is greater than any other number."""
        if value is None:
            return False
        return _COMPARISONS[self.comparison](_ordered(value), _ordered(self.bound))


def _ordered(number: float) -> tuple[bool, float]:
    """Returns a sort key by which NaN is greater than all other numbers."""
    return (True, 0.0) if math.isnan(number) else (False, number)


class Alert(NamedTuple):
    name: str
    sql: str
    condition: Condition


def condition(text: str) -> Condition:
    """Parses a condition such as ``MIN(success_ratio) < 0.9``. Raises Malformed if it is not
    ``AGGREGATE(column) comparison number``, where the number may also be ``NaN``, ``Infinity`` or
    ``-Infinity``."""
    match = _CONDITION.fullmatch(text)
    try:
        if match:
            return Condition(match[1].upper(), match[2], match[3], float(match[4]))
    except ValueError:
        pass
    raise Malformed(f"{text.strip()!r} is no condition: write it as MIN(success_ratio) < 0.9")


def when(sql: str) -> str | None:
    """Returns the text after ``-- when:`` in an alert's SQL; None if there is no such line."""
    match = _WHEN.search(sql)
    return match[1].strip() if match else None


def of_text(name: str, sql: str) -> Alert:
    """Parses the SQL of an alert file to an alert. Raises Malformed if the line ``-- when:`` is
    missing or holds no valid condition."""
    condition_text = when(sql)
    if condition_text is None:
        raise Malformed("it has no line such as -- when: MIN(success_ratio) < 0.9")
    return Alert(name, sql, condition(condition_text))


def stored() -> Iterator[tuple[str, str]]:
    """Yields (alert name, SQL) of all alert files, ordered by name."""
    for entry in store().list(FOLDER):
        if entry.size is not None and entry.name.endswith(SUFFIX):
            content = store().get(f"{FOLDER}/{entry.name}")
            if content is not None:
                yield entry.name.removesuffix(SUFFIX), content.decode("utf-8", "replace")
