"""``python -m local.admin alert``: a query and a condition on its answer, such as
``MIN(success_ratio) < 0.9``; tells nobody itself, its exit code does."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from operate.modules import CannotRun

MET: Final = 2
"""Exit code when the condition is met."""

_CONDITION: Final = re.compile(
    r"\s*(MIN|MAX|SUM|AVG|COUNT|FIRST)\s*\(\s*(\w+)\s*\)\s*(<=|>=|!=|=|<|>)\s*(-?[\d.eE+-]+)\s*",
    re.IGNORECASE,
)
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_AGGREGATES: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "MIN": min,
    "MAX": max,
    "SUM": math.fsum,
    "AVG": lambda values: math.fsum(values) / len(values),
    "FIRST": lambda values: values[0],
}


class Condition(NamedTuple):
    aggregate: str
    column: str
    comparison: str
    bound: float

    def value(self, answer: dict[str, Any]) -> float | None:
        """Of the rows of an answer; None where no row has a number, which meets no condition.

        Raises:
            CannotRun: the answer has no such column.
        """
        if self.column not in answer["columns"]:
            raise CannotRun(f"the query has no column {self.column!r}")
        place = answer["columns"].index(self.column)
        found = [row[place] for row in answer["rows"] if row[place] is not None]
        if self.aggregate == "COUNT":
            return float(len(found))
        numbers = [float(one) for one in found]
        return _AGGREGATES[self.aggregate](numbers) if numbers else None

    def is_met(self, value: float | None) -> bool:
        return value is not None and _COMPARISONS[self.comparison](value, self.bound)


def parse(text: str) -> Condition:
    """
    Raises:
        CannotRun: it is not ``AGGREGATE(column) comparison number``.
    """
    found = _CONDITION.fullmatch(text)
    try:
        if found:
            return Condition(found[1].upper(), found[2], found[3], float(found[4]))
    except ValueError:
        pass
    raise CannotRun(f"--when {text}: write it as MIN(success_ratio) < 0.9")


def run(ask: Callable[[], dict[str, Any]], when: str) -> int:
    """Prints the answer's rows and whether the condition is met."""
    condition = parse(when)
    answer = ask()
    value = condition.value(answer)
    for row in answer["rows"]:
        print("\t".join(map(str, row)))
    met = condition.is_met(value)
    shown = "no value" if value is None else f"{value:g}"
    print(f"{'ALERT' if met else 'ok'}: {when.strip()}, it is {shown}")
    return MET if met else 0
