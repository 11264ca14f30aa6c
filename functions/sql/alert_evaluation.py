"""Evaluates one alert: runs its query with the rights of its owner, or reads the spending of its
budget, and compares the value with the condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.entities import alert_conditions
from mlcore.entities.alert_conditions import AlertCondition, InvalidCondition
from mlcore.entities.alerts import SNS, Alert
from mlcore.gateway.budgets import read_spending
from mlcore.ids import now_ms
from mlcore.repos.gateway import budgets
from mlcore.system_tables.alert_states import ConditionOutcome
from mlcore.webhooks.alert_messages import MAX_ROWS
from sql import execution, owner_rights
from sql.owner_rights import ReadableRows

ROWS_BYTES: Final = 100_000
NO_RIGHTS: Final = (
    "The owner of this alert does not exist any more or was deactivated, the API key by which it "
    "was created was revoked, or the owner may no longer query the rows of this workspace. "
    "Groups of a login do not count, because they are not stored."
)
NO_OPERATORS: Final = (
    "The owner of this alert is no administrator any more, so the alert may not mail to those who "
    "operate this deployment. Remove the destination of type sns."
)
_EVERY_ROW: Final = ReadableRows(None, None)
_NO_ROWS: Final = ReadableRows([], [])
"""The rows of an owner who may read none."""


class Evaluation:
    """One evaluation of an SQL or budget alert.

    Raises:
        Busy: no SQL query can be run at the moment.
        MlflowError: the DynamoDB table cannot be read at the moment.
    """

    def __init__(self, alert: Alert, sql: str, fault: str = "") -> None:
        """
        Args:
            sql: the text of the query; empty for an alert over a budget.
            fault: why the alert cannot be evaluated, if that is known already.
        """
        self._alert, self._sql, self._fault = alert, sql, fault
        is_file = alert.workspace == keys.OF_FILES
        self._rows = _EVERY_ROW if is_file else owner_rights.rows_of_owner(alert) or _NO_ROWS
        if not self._rows.notifies_operators and any(
            destination.kind == SNS for destination in alert.destinations
        ):
            self._fault = self._fault or NO_OPERATORS
        self._budget: dict[str, Any] = {}
        self.outcome = self._evaluate()

    def first_rows(self) -> Mapping[str, Any] | None:
        """Returns ``columns`` and ``rows``: the first rows of the alert's SQL query, or one row
        with the spending of the alert's budget. None if the query cannot be run."""
        if self._budget:
            return {"columns": list(self._budget), "rows": [list(self._budget.values())]}
        try:
            return self._run(self._sql, MAX_ROWS)
        except errors.MlflowError:
            # An alert's message is sent even if its rows cannot be read.
            return None

    def _evaluate(self) -> ConditionOutcome:
        if self._rows is _NO_ROWS or self._fault:
            return ConditionOutcome(False, error=self._fault or NO_RIGHTS)
        try:
            condition = alert_conditions.parse(self._alert.condition)
            value: float | None
            if self._alert.budget_policy_id:
                value = self._budget_value(condition)
            else:
                value = condition.value(self._run(condition.query(self._sql), 1))
        except (InvalidCondition, errors.InvalidParameterValue, errors.FeatureDisabled) as error:
            return ConditionOutcome(False, error=str(error))
        except errors.InternalError as error:
            return ConditionOutcome(False, error=error.message)
        return ConditionOutcome(condition.is_met(value), value)

    def _run(self, sql: str, rows: int) -> dict[str, Any]:
        return execution.run_query(
            {
                "sql": sql,
                "parameters": dict(self._alert.parameters),
                "casts": dict(self._alert.casts),
                "workspaces": self._rows.workspaces,
                "audited": self._rows.audited,
                "format": "json",
                "rows": rows,
                "bytes": ROWS_BYTES,
            }
        )

    def _budget_value(self, condition: AlertCondition) -> float:
        """Returns the value of the condition's column for the alert's budget. COUNT is always 1,
        because a budget is one row. Raises InvalidCondition if the budget was deleted or has no
        such column."""
        policy = budgets.find(self._alert.workspace, self._alert.budget_policy_id)
        if policy is None:
            raise InvalidCondition("The budget policy was deleted.")
        (spent,) = read_spending([policy], now_ms())
        amount = policy.budget_amount
        self._budget = {
            "budget_policy_id": policy.budget_policy_id,
            "spent": spent,
            "budget_amount": amount,
            "spent_ratio": spent / amount if amount else float("inf"),
        }
        value = self._budget.get(condition.column)
        if condition.aggregate == "COUNT":
            return 1.0
        if not isinstance(value, float | int):
            raise InvalidCondition(
                "An alert over a budget can use the columns spent, budget_amount and spent_ratio."
            )
        return float(value)
