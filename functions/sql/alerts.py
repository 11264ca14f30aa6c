"""Decides the alerts, on a schedule: logs each, and counts for CloudWatch those that are met.

Who is told, and how, is the alarm's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mlcore import errors
from mlcore.observability import count, logger
from mlcore.system_tables import alerts
from mlcore.system_tables.alerts import Malformed
from sql import child

QUERIES: Final = Path(__file__).with_name("queries")
"""Alerts of every deployment; a file of the same name in the bucket takes its place."""
RAISED: Final = "AlertsRaised"
"""The metric: how many are met, or cannot be decided."""


def run() -> dict[str, Any]:
    """``{"met": [names], "failed": [names], "alerts": number}``. An alert that cannot be decided
    stops no other."""
    texts = {path.stem: path.read_text() for path in sorted(QUERIES.glob("*.sql"))}
    texts |= dict(alerts.stored())
    met, failed = [], []
    for name, text in sorted(texts.items()):
        try:
            is_met = _is_met(name, text)
        except (Malformed, errors.MlflowError) as error:
            failed.append(name)
            logger.error("an alert cannot be decided", extra={"alert": name, "why": str(error)})
            continue
        if is_met:
            met.append(name)
    count({RAISED: len(met) + len(failed)}, {"met": met, "failed": failed})
    return {"alerts": len(texts), "met": met, "failed": failed}


def _is_met(name: str, text: str) -> bool:
    alert = alerts.of_text(name, text)
    asked = alert.condition.query(alert.sql)
    answer = child.ask({"sql": asked, "parameters": {}, "workspaces": None, "format": "json"})
    value = alert.condition.value(answer)
    is_met = alert.condition.is_met(value)
    told = {"alert": name, "when": alerts.when(text), "value": value, "met": is_met}
    (logger.warning if is_met else logger.info)("an alert was decided", extra=told)
    return is_met
