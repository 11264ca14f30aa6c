"""``python -m local.admin alert``: a query and a condition on its answer, such as
``MIN(success_ratio) < 0.9``; tells nobody itself, its exit code does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.system_tables import alerts
from operate.modules import CannotRun

MET: Final = 2
"""Exit code when the condition is met."""


def run(ask: Callable[[str], dict[str, Any]], sql: str, when: str | None) -> int:
    """Prints the query's rows and whether the condition is met.

    Args:
        ask: answers a query; the second is for the value of the condition, for which all rows
            count, while those of an answer may be cut.
        when: the condition; None for the one that the query's text names.

    Raises:
        CannotRun: there is no condition, or it does not fit the query.
    """
    told = when or alerts.when(sql)
    if told is None:
        raise CannotRun("say --when, or write a line -- when: … into the query's file")
    try:
        condition = alerts.condition(told)
    except alerts.Malformed as error:
        raise CannotRun(str(error)) from error
    answer = ask(sql)
    value = condition.value(ask(condition.query(sql)))
    for row in answer["rows"]:
        print("\t".join(map(str, row)))
    if answer.get("truncated"):
        print("… and more rows, which count for the condition")
    met = condition.is_met(value)
    shown = "no value" if value is None else f"{value:g}"
    print(f"{'ALERT' if met else 'ok'}: {told.strip()}, it is {shown}")
    return MET if met else 0
