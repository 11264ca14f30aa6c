"""Conditions of alerts, such as ``MIN(success_ratio) < 0.9``: an aggregate of a column of a query's
rows, compared with a number."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.entities.sql_statement_end import without_end

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


class InvalidCondition(ValueError):
    """Raised if an alert has no valid condition on its SQL result or budget; says what is wrong."""


class AlertCondition(NamedTuple):
    aggregate: str
    column: str
    comparison: str
    bound: float

    def query(self, sql: str) -> str:
        """Returns SQL that aggregates all rows of the alert's query into one number. NULL is
        ignored; NaN counts as the greatest number."""
        number = f"CAST(`{self.column}` AS DOUBLE)"
        rows = f"FROM (\n{without_end(sql)}\n) AS alert_rows"
        if self.aggregate == "COUNT":
            return f"SELECT COUNT(`{self.column}`) AS value {rows}"
        if self.aggregate == "FIRST":
            return f"SELECT {number} AS value {rows} WHERE `{self.column}` IS NOT NULL LIMIT 1"
        return f"SELECT {self.aggregate}({number}) AS value {rows}"

    def value(self, answer: Mapping[str, Any]) -> float | None:
        """Returns the number in the result of the SQL of :meth:`query`; None if the result has no
        row or NULL. None never meets a condition."""
        number = answer["rows"][0][0] if answer["rows"] else None
        return None if number is None else float(number)

    def is_met(self, value: float | None) -> bool:
        """Whether the value meets the condition; None never does. Compares as the SQL engine does:
        NaN equals NaN, and is greater than any other number."""
        if value is None:
            return False
        return _COMPARISONS[self.comparison](_ordered(value), _ordered(self.bound))


def _ordered(number: float) -> tuple[bool, float]:
    """Returns a sort key by which NaN is greater than all other numbers."""
    return (True, 0.0) if math.isnan(number) else (False, number)


def parse(text: str) -> AlertCondition:
    """Parses an alert's condition, as ``MIN(success_ratio) < 0.9``. Raises InvalidCondition unless
    it is ``AGGREGATE(column) comparison number``, where the number may also be ``NaN``,
    ``Infinity`` or ``-Infinity``."""
    match = _CONDITION.fullmatch(text)
    try:
        if match:
            return AlertCondition(match[1].upper(), match[2], match[3], float(match[4]))
    except ValueError:
        pass
    shown = text.strip()[:300]
    raise InvalidCondition(f"{shown!r} is no condition: write it as MIN(success_ratio) < 0.9")


def number_text(value: float) -> str:
    """Returns a number as conditions of alerts spell it: ``NaN``, ``Infinity``, ``-Infinity``, or a
    decimal number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.15g}"
