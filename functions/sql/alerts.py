"""Checks the alerts, on a schedule: runs the query of each, logs the result, and writes how many
conditions are met as a CloudWatch metric. A CloudWatch alarm on the metric notifies people.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mlcore import errors
from mlcore.observability import count, logger
from mlcore.system_tables import alerts
from mlcore.system_tables.alerts import Malformed
from sql import execution

QUERIES: Final = Path(__file__).with_name("queries")
"""The alerts of every deployment. A file of the same name in the bucket replaces one."""
RAISED: Final = "AlertsRaised"
"""The metric: the number of alerts whose condition is met or cannot be checked."""


def check_all() -> dict[str, Any]:
    """Checks all alerts. Returns ``{"met": [names], "failed": [names], "alerts": number}``. An
    alert that cannot be checked does not stop the others."""
    texts = {path.stem: path.read_text() for path in sorted(QUERIES.glob("*.sql"))}
    texts |= dict(alerts.stored())
    met, failed = [], []
    for name, text in sorted(texts.items()):
        try:
            is_met = _is_met(name, text)
        except (Malformed, errors.MlflowError) as error:
            failed.append(name)
            logger.error("an alert cannot be checked", extra={"alert": name, "why": str(error)})
            continue
        if is_met:
            met.append(name)
    count({RAISED: len(met) + len(failed)}, {"met": met, "failed": failed})
    return {"alerts": len(texts), "met": met, "failed": failed}


def _is_met(name: str, text: str) -> bool:
    alert = alerts.of_text(name, text)
    query = alert.condition.query(alert.sql)
    answer = execution.run_query(
        {"sql": query, "parameters": {}, "workspaces": None, "format": "json"}
    )
    value = alert.condition.value(answer)
    is_met = alert.condition.is_met(value)
    log_fields = {"alert": name, "when": alerts.when(text), "value": value, "met": is_met}
    (logger.warning if is_met else logger.info)("an alert was checked", extra=log_fields)
    return is_met
