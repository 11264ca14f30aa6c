"""``python -m local.admin alert``: runs an SQL query on the system tables and checks a condition on
its rows, such as ``MIN(success_ratio) < 0.9``. Notifies nobody; the exit code is 2 if the condition
is met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.entities import alert_conditions
from mlcore.system_tables import alert_files
from operate.module_loading import CannotRun

CONDITION_MET: Final = 2
"""Exit code when the condition is met."""


def run(ask: Callable[[str], dict[str, Any]], sql: str, when: str | None) -> int:
    """Prints the rows of an alert's query and whether the alert's condition is met. Returns the
    exit code of the command.

    Args:
        ask: runs a query. It is called twice: for the rows, which may be cut, and for the
            condition's value over all rows.
        when: the condition; None to use the condition in the query's text (``-- when: …``).

    Raises:
        CannotRun: there is no condition, or it does not fit the query.
    """
    text = when or alert_files.when(sql)
    if text is None:
        raise CannotRun("give --when, or write a line -- when: … into the query's file")
    try:
        condition = alert_conditions.parse(text)
    except alert_conditions.InvalidCondition as error:
        raise CannotRun(str(error)) from error
    answer = ask(sql)
    value = condition.value(ask(condition.query(sql)))
    for row in answer["rows"]:
        print("\t".join(map(str, row)))
    if answer.get("truncated"):
        print("… and more rows, which count for the condition")
    met = condition.is_met(value)
    shown = "no value" if value is None else f"{value:g}"
    print(f"{'ALERT' if met else 'ok'}: {text.strip()}, it is {shown}")
    return CONDITION_MET if met else 0
