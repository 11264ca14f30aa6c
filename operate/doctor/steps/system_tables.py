"""Checks SQL over the system tables: the MLflow run that the checkup made has to be in them."""

from __future__ import annotations

from typing import Any, Final

from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import LeftOut

_SQL: Final = "SELECT status FROM system.mlflow.runs_latest WHERE run_id = :run"
_PATH: Final = "/api/3.0/mlflow-serverless/sql"


def query(checkup: Checkup) -> str:
    """Waits until a SQL query finds the checkup's run in the system tables. The queries ask for
    fresh tables until the server refuses that: a laptop publishes them for each query; a deployment
    refuses and publishes about every minute. Returns the result as a text; raises Wrong, or LeftOut
    if an earlier step failed or this user may not read the system tables."""
    body: dict[str, Any] = {"sql": _SQL, "parameters": {"run": checkup.fact("run")}}
    fresh, seen = ["first"], []

    def rows() -> Any:
        answer = checkup.api.call("POST", _PATH, {**body, "fresh": bool(fresh)})
        if answer.status == 400 and fresh:
            fresh.clear()
            return None
        if answer.status == 403:
            raise LeftOut("this user may not read the system tables")
        if answer.status == 429:
            return None
        expect(answer.status == 200, f"{_PATH}: {answer.status} {answer.text[:300]}")
        seen.append(len(answer.body["rows"]))
        return answer.body["rows"]

    rows_read = checkup.wait("the run is in system.mlflow.runs_latest", rows)
    return f"the run is a row ({rows_read[0][0]}) after {len(seen)} queries"
