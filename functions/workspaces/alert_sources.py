"""The source of an alert: SQL with values of its parameters, or the spending of a budget. The SQL
of a saved query is copied into the alert: a user who may change the saved query must not change the
SQL that runs in the name of the alert's owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities.alerts import Alert
from mlcore.entities.saved_queries import DATE, TIMESTAMP, Value
from mlcore.limits import alerts as limits
from mlcore.limits import saved_queries as query_limits
from mlcore.repos import saved_queries
from mlcore.repos.gateway import budgets
from workspaces import messages as m

CASTS: Final = {DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
"""The SQL types of parameters whose values are texts in JSON."""
BUDGET_CONDITION: Final = "MAX(spent_ratio) >= 1"
_FIELDS: Final = ("sql", "saved", "budget_policy_id")


class AlertSource(NamedTuple):
    """The fields of an alert that say what it evaluates: its query with parameters, or its
    budget."""

    sql: str
    parameters: Mapping[str, Value]
    casts: Mapping[str, str]
    saved: str
    budget_policy_id: str


def source_of(message: m.CreateAlert | m.UpdateAlert, workspace: str) -> AlertSource:
    """Returns the query, parameters or budget that a request names for an alert.

    Raises:
        InvalidParameterValue: the request does not name exactly one of a query, a saved query and a
            budget; or the SQL, a name or a value of a parameter is not valid.
        ResourceDoesNotExist: there is no such saved query or budget.
    """
    if sum(message.has(field) for field in _FIELDS) != 1:
        raise errors.InvalidParameterValue(
            "An alert needs exactly one of 'sql', 'saved' (the name of a saved query) and "
            "'budget_policy_id'."
        )
    sent: Any = message.parameters if message.has("parameters") else {}
    values = limits.parameter_values(sent)
    if message.has("sql"):
        query_limits.check_sql(message.sql)
        return AlertSource(message.sql, values, {}, "", "")
    if message.has("saved"):
        return _of_saved_query(message.saved, values, workspace)
    if values:
        raise errors.InvalidParameterValue("An alert over a budget has no parameters.")
    if budgets.find(workspace, message.budget_policy_id) is None:
        raise errors.ResourceDoesNotExist(
            f"The workspace has no budget policy {message.budget_policy_id!r}."
        )
    return AlertSource("", {}, {}, "", message.budget_policy_id)


def default_condition(source: AlertSource) -> str:
    """Returns the condition of an alert whose request has none. Raises InvalidParameterValue for an
    alert on an SQL query, which must have one."""
    if source.budget_policy_id:
        return BUDGET_CONDITION
    raise errors.InvalidParameterValue(
        "Missing value for required parameter 'condition', such as MIN(success_ratio) < 0.9."
    )


def with_changed_source(alert: Alert, message: m.UpdateAlert) -> Alert:
    """Returns the alert with the SQL query, query parameters or budget that an update request
    names. Raises the errors of :func:`source_of`, and InvalidParameterValue if the request has only
    parameters, but the alert is over a budget or a saved query."""
    if any(message.has(field) for field in _FIELDS):
        return alert._replace(**source_of(message, alert.workspace)._asdict())
    if not message.has("parameters"):
        return alert
    values = limits.parameter_values(message.parameters)
    if alert.budget_policy_id:
        raise errors.InvalidParameterValue("An alert over a budget has no parameters.")
    if alert.saved:
        raise errors.InvalidParameterValue(
            "Name the saved query in 'saved' beside the parameters: it may have others by now."
        )
    return alert._replace(parameters=values)


def _of_saved_query(name: str, values: Mapping[str, Value], workspace: str) -> AlertSource:
    query_limits.check_name(name)
    query = saved_queries.get(workspace, name)
    casts = {
        parameter.name: CASTS[parameter.kind]
        for parameter in query.parameters
        if parameter.kind in CASTS
    }
    checked = query_limits.values_of(query.parameters, values)
    limits.check_size(checked)
    return AlertSource(query.sql, checked, casts, query.name, "")
