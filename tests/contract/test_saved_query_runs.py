"""Runs of saved queries on real tables: typed parameters are values of their types in the SQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sql.app
import workspaces.app
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

PATH = "/api/3.0/mlflow-serverless/"
DAY_MS = 86_400_000


def called(path: str, body: Any) -> tuple[int, Any]:
    handler = sql.app.handler if path == "sql" else workspaces.app.handler
    answer = handler(
        {
            "rawPath": PATH + path,
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
            "body": json.dumps(body),
            "isBase64Encoded": False,
        },
        None,
    )
    return answer["statusCode"], json.loads(answer["body"])


def saved(statement: str, *parameters: dict[str, Any]) -> None:
    body = {"name": "q", "sql": statement, "parameters": list(parameters)}
    assert called("queries", body)[0] == 200


def rows(**parameters: Any) -> Any:
    status, body = called("sql", {"saved": "q", "parameters": parameters})
    assert status == 200, body
    return body["rows"]


@pytest.fixture
def runs(store: Store, tables: Tables) -> list[str]:
    """Names of three runs, which started on the first three days of 2026 at noon."""
    experiment = store.api.post("experiments/create", name="e")["experiment_id"]
    names = ["a", "b'); --", "c"]
    for number, name in enumerate(names):
        start = 1_767_268_800_000 + number * DAY_MS
        made = store.api.post(
            "runs/create", experiment_id=experiment, run_name=name, start_time=start
        )
        points = [{"key": "loss", "value": number / 2, "step": 0, "timestamp": start}]
        store.api.post("runs/log-batch", run_id=made["run"]["info"]["run_id"], metrics=points)
    tables.follow()
    return names


def test_values_have_their_types(runs: list[str]) -> None:
    kinds = ("text", "integer", "number", "boolean", "date", "timestamp")
    parameters = [{"name": f"p_{kind}", "type": kind, "default": None} for kind in kinds]
    saved(
        "SELECT " + ", ".join(f":p_{kind} AS {kind}" for kind in kinds) + ", "
        "date_add(:p_date, 1) AS next_day, :p_timestamp < TIMESTAMP'2026-02-01' AS earlier, "
        ":p_integer / 2 AS half",
        *parameters,
    )
    sent = {
        "p_text": "' || (SELECT 1) || '",
        "p_integer": "7",
        "p_number": "NaN",
        "p_boolean": "True",
        "p_date": "2026-01-31",
        "p_timestamp": "2026-01-31T12:00:00+02:00",
    }
    status, body = called("sql", {"saved": "q", "parameters": sent})
    assert status == 200, body
    assert body["rows"] == [
        [
            *("' || (SELECT 1) || '", 7, "NaN", True, "2026-01-31", "2026-01-31T10:00:00.000Z"),
            *("2026-02-01", True, 3.5),
        ]
    ]
    assert rows() == [[None] * 9]


def test_rows_between_two_days(runs: list[str]) -> None:
    """Files are pruned by the values of parameters, as by constants."""
    saved(
        "SELECT run_name FROM system.mlflow.runs_latest "
        "WHERE start_time >= :since AND start_time < :until ORDER BY 1",
        {"name": "since", "type": "date"},
        {"name": "until", "type": "timestamp", "default": "2026-01-03"},
    )
    assert rows(since="2026-01-01") == [["a"], ["b'); --"]]
    assert rows(since="2026-01-02", until="2026-01-03T12:00:01Z") == [["b'); --"], ["c"]]
    assert rows(since="2026-01-02", until=None) == []


@pytest.mark.parametrize(
    "hostile",
    [
        "x' OR '1'='1",
        "x'; DROP VIEW mlflow.runs_latest; --",
        "x') UNION SELECT experiment_id FROM system.mlflow.runs_latest --",
        "$name",
        ":name",
        "/* */",
        "\\' OR 1=1 --",
    ],
)
def test_a_text_is_no_sql(runs: list[str], hostile: str) -> None:
    saved(
        "SELECT run_name FROM system.mlflow.runs_latest WHERE run_name = :name",
        {"name": "name", "type": "text"},
    )
    assert rows(name=hostile) == []
    assert rows(name="b'); --") == [["b'); --"]]


def test_a_limit_and_an_optional_filter(runs: list[str]) -> None:
    saved(
        "SELECT run_name FROM system.mlflow.runs_latest "
        "WHERE :name IS NULL OR run_name = :name ORDER BY run_name LIMIT :top",
        {"name": "name", "type": "text", "default": None},
        {"name": "top", "type": "integer", "default": 2},
    )
    assert rows() == [["a"], ["b'); --"]]
    assert rows(name="c") == [["c"]]
    assert rows(top=1) == [["a"]]


def test_what_cannot_run_is_the_callers_error(runs: list[str]) -> None:
    saved("DELETE FROM system.mlflow.runs_latest")
    status, body = called("sql", {"saved": "q"})
    assert (status, body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    body = {"name": "u", "sql": "SELECT :undeclared", "parameters": []}
    assert called("queries", body)[0] == 200
    status, body = called("sql", {"saved": "u"})
    assert (status, body["message"]) == (400, "The parameter 'undeclared' has no value.")
    assert called("sql", {"saved": "u", "parameters": {"undeclared": 1}})[0] == 400
