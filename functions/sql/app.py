"""The routes for SQL queries over MLflow's system tables and for the list of who did what, and the
scheduled evaluation of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import environment
from mlcore.db import deadline
from mlcore.http import lambda_handler, post
from sql import audit_activity, due_alerts, execution, service
from sql import messages as m

RPCS = (
    post(
        "/mlflow-serverless/sql",
        m.Query,
        service.query,
        "system_tables.query",
        version="3.0",
        since="",
        reads=True,
    ),
    post(
        "/mlflow-serverless/activity",
        m.SearchActivity,
        audit_activity.search,
        "system_tables.activity",
        version="3.0",
        since="",
        reads=True,
    ),
)

REQUEST_SECONDS: Final = 27.0
"""The time limit for answering a request: API Gateway waits 30 seconds. The function may run
longer, for the alerts."""

_answer: Final = lambda_handler(RPCS)

if environment.in_lambda():
    # In Lambda every request needs the process. On a laptop the first query starts it, which saves
    # memory if there is none.
    execution.start_process()


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Handles an API Gateway event of the SQL routes, or the schedule's event ``{"alerts": true}``,
    which checks the SQL alerts that are due."""
    if "alerts" in event:
        return due_alerts.check_all()
    with deadline.within(context, REQUEST_SECONDS):
        return _answer(event, context)
