"""``python -m local.admin alert``: a query and a condition on its answer, such as
``MIN(success_ratio) < 0.9``; tells nobody itself, its exit code does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.system_tables import alerts
from operate.modules import CannotRun

MET: Final = 2
"""Exit code when the condition is met."""


def run(ask: Callable[[], dict[str, Any]], sql: str, when: str | None) -> int:
    """Prints the answer's rows and whether the condition is met.

    Args:
        when: the condition; None for the one that the query's text names.

    Raises:
        CannotRun: there is no condition, or it does not fit the answer.
    """
    try:
        told = when or alerts.when(sql)
        if told is None:
            raise CannotRun("say --when, or write a line -- when: … into the query's file")
        condition = alerts.condition(told)
        answer = ask()
        value = condition.value(answer)
    except alerts.Malformed as error:
        raise CannotRun(str(error)) from error
    for row in answer["rows"]:
        print("\t".join(map(str, row)))
    met = condition.is_met(value)
    shown = "no value" if value is None else f"{value:g}"
    print(f"{'ALERT' if met else 'ok'}: {told.strip()}, it is {shown}")
    return MET if met else 0
