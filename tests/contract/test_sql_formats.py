"""One answer in three forms: JSON, CSV, and Arrow as a reader that is not ours takes it."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import polars
import pyarrow
import pytest

from mlcore import errors
from operate import system_tables
from operate.modules import CannotRun
from sql import app, child
from sql.service import accepted
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

ARROW = "application/vnd.apache.arrow.stream"
TABLES = ("experiments_latest", "runs_latest", "run_metrics_history")


@pytest.fixture
def logged(store: Store, tables: Tables) -> Tables:
    experiment = store.api.post("experiments/create", name='a "b", ü')["experiment_id"]
    run = store.api.post("runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    points = [
        {"key": "m", "value": value, "step": step, "timestamp": step}
        for step, value in enumerate((0.1, "NaN", -7e300))
    ]
    params = [{"key": "p", "value": "line\nline"}]
    store.api.post("runs/log-batch", run_id=run, metrics=points, params=params)
    tables.follow()
    return tables


def _called(body: dict[str, Any], accept: str = "*/*") -> dict[str, Any]:
    path = "/api/3.0/mlflow-serverless/sql"
    return app.handler(
        {
            "rawPath": path,
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "accept": accept},
            "requestContext": {"http": {"method": "POST", "path": path}},
            "body": json.dumps(body),
            "isBase64Encoded": False,
        },
        None,
    )


def _stream(answer: dict[str, Any]) -> pyarrow.Table:
    assert answer["isBase64Encoded"]
    return pyarrow.ipc.open_stream(base64.b64decode(answer["body"])).read_all()


@pytest.mark.parametrize("table", TABLES)
def test_arrow_holds_what_the_table_does(logged: Tables, table: str) -> None:
    """With the types of the table's own files: maps, lists, times in UTC, NaN."""
    answer = _called({"sql": f"SELECT * FROM system.mlflow.{table}"}, ARROW)
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, ARROW)
    found = polars.from_arrow(_stream(answer))
    assert isinstance(found, polars.DataFrame)
    stored = logged.frame(table).select(found.columns)
    assert found.schema == stored.schema
    assert repr(sorted(found.to_dicts(), key=repr)) == repr(sorted(stored.to_dicts(), key=repr))


def test_the_caller_chooses_the_form(logged: Tables) -> None:
    sql = "SELECT metric_value AS v FROM system.mlflow.run_metrics_history ORDER BY metric_step"
    text = "v\n0.1\nNaN\n-7e+300\n"
    told = json.loads(_called({"sql": sql})["body"])
    assert told["rows"] == [[0.1], ["NaN"], [-7e300]]
    plain = _called({"sql": sql}, "text/csv")
    assert plain["headers"]["content-type"] == "text/csv; charset=utf-8"
    assert plain["body"] == text
    # Named in the body, a form comes in JSON, unless the caller takes no JSON.
    assert json.loads(_called({"sql": sql, "format": "csv"})["body"]) == {"text": text}
    assert _called({"sql": sql, "format": "csv"}, "text/csv")["body"] == text
    packed = json.loads(_called({"sql": sql, "format": "arrow"})["body"])["arrow"]
    whole = pyarrow.ipc.open_stream(io.BytesIO(base64.b64decode(packed))).read_all()
    first, second, third = whole["v"].to_pylist()
    assert (first, math.isnan(second), third) == (0.1, True, -7e300)
    assert _called({"sql": sql, "format": "xml"})["statusCode"] == 400


def test_no_rows_have_columns(logged: Tables) -> None:
    sql = "SELECT run_id, metric_step FROM system.mlflow.run_metrics_history WHERE run_id = :run"
    answer = _called({"sql": sql, "parameters": {"run": "none"}}, ARROW)
    found = _stream(answer)
    assert (found.num_rows, found.schema.names) == (0, ["run_id", "metric_step"])


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_what_cannot_be_cut_is_refused(logged: Tables, form: str) -> None:
    many = "SELECT repeat('x', n) FROM (SELECT explode(sequence(1, 4000)) AS n)"
    with pytest.raises(errors.InvalidParameterValue, match="more than 4194304 bytes: add a LIMIT"):
        child.ask({"sql": many, "parameters": {}, "format": form})
    with pytest.raises(errors.InvalidParameterValue, match="Could not convert"):
        child.ask({"sql": "SELECT CAST('x' AS INT)", "parameters": {}, "format": form})


def test_the_command_writes_a_stream(
    logged: Tables, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT status FROM system.mlflow.runs_latest"
    assert system_tables.sql(sql, [], "arrow") == 0
    found = pyarrow.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert found.to_pydict() == {"status": ["RUNNING"]}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(CannotRun, match="write it to a file"):
        system_tables.sql(sql, [], "arrow")


def test_what_is_liked_best_is_answered() -> None:
    assert accepted("") == accepted("*/*") == accepted("text/html, */*;q=0.8") == "application/json"
    assert accepted("text/csv;q=0.5, application/json;q=0.4") == "text/csv"
    assert accepted(f"text/csv;q=0.5, {ARROW.upper()}") == ARROW
    assert accepted("text/csv;q=none") == accepted("text/csv;q=0") == "application/json"
