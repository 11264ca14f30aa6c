"""One answer in three forms: JSON, CSV, and Arrow as a reader that is not ours takes it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest

from mlcore import errors
from operate import system_tables
from operate.module_loading import CannotRun
from sql import app, execution
from sql.service import preferred_media_type
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

ARROW = "application/vnd.apache.arrow.stream"


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


def test_arrow_holds_what_the_table_does(logged: Tables) -> None:
    """With the types of the table's own files: maps, lists, times in UTC, NaN."""
    answer = _called({"sql": "SELECT * FROM system.mlflow.runs_latest"}, ARROW)
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, ARROW)
    from_arrow = polars.from_arrow(_stream(answer))
    assert isinstance(from_arrow, polars.DataFrame)
    stored = logged.frame("runs_latest").select(from_arrow.columns)
    assert from_arrow.schema == stored.schema
    assert repr(from_arrow.to_dicts()) == repr(stored.to_dicts())


def test_csv_has_what_json_has(logged: Tables) -> None:
    sql = "SELECT metric_value AS v FROM system.mlflow.run_metrics_history ORDER BY metric_step"
    answer = json.loads(_called({"sql": sql})["body"])
    assert answer["rows"] == [[0.1], ["NaN"], [-7e300]]
    assert _called({"sql": sql}, "text/csv")["body"] == "v\n0.1\nNaN\n-7e+300\n"


def test_the_caller_chooses_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named in the body, a form comes in JSON, unless that is what the caller accepts as it is."""
    made = {
        "json": {"rows": []},
        "csv": {"text": "v\n1\n"},
        "arrow": {"arrow": base64.b64encode(b"\xffstream").decode()},
    }
    monkeypatch.setattr(execution, "run_query", lambda request: made[request["format"]])
    sql = {"sql": "SELECT 1 AS v"}
    for form, answer in made.items():
        assert json.loads(_called({**sql, "format": form})["body"]) == answer
    assert json.loads(_called(sql)["body"]) == made["json"]
    for body in (sql, {**sql, "format": "csv"}):
        plain = _called(body, "text/csv")
        assert plain["headers"]["content-type"] == "text/csv; charset=utf-8"
        assert (plain["body"], plain["isBase64Encoded"]) == ("v\n1\n", False)
    raw = _called(sql, ARROW)
    assert (base64.b64decode(raw["body"]), raw["isBase64Encoded"]) == (b"\xffstream", True)
    assert json.loads(_called({**sql, "format": "csv"}, ARROW)["body"]) == made["csv"]
    assert _called({**sql, "format": "xml"})["statusCode"] == 400


def test_no_rows_have_columns(tmp_path: Path) -> None:
    answer = pytest.importorskip("mltables.result_encoding")
    database = pytest.importorskip("mltables.duckdb_connection")
    with database.connect(tmp_path) as connection:
        nothing = connection.sql("SELECT [n] AS listed, 'a' AS text FROM range(0) AS of(n)")
        stream = base64.b64decode(answer.encode_arrow(nothing, 1000)["arrow"])
    arrow_table = pyarrow.ipc.open_stream(stream).read_all()
    assert (arrow_table.num_rows, arrow_table.schema.names) == (0, ["listed", "text"])


def test_what_cannot_be_cut_is_refused(tmp_path: Path, logged: Tables) -> None:
    answer = pytest.importorskip("mltables.result_encoding")
    database = pytest.importorskip("mltables.duckdb_connection")
    with database.connect(tmp_path) as connection:
        many = "SELECT repeat('x', 90) FROM range(100000)"
        with pytest.raises(answer.TooLarge, match="more than 4000000 bytes: add a LIMIT"):
            answer.encode_arrow(connection.sql(many), 4_000_000)
        with pytest.raises(answer.TooLarge, match="more than 4000000 bytes: add a LIMIT"):
            answer.encode_csv(connection.execute(many), 4_000_000)
        with pytest.raises(answer.TooLarge, match="more than 4 bytes"):
            answer.encode_csv(connection.execute("SELECT 'é' AS a"), 4)
        assert answer.encode_csv(connection.execute("SELECT 'é' AS a"), 5) == {"text": "a\né\n"}
    with pytest.raises(errors.InvalidParameterValue, match="cannot be cast"):
        execution.run_query({"sql": "SELECT CAST('x' AS INT)", "parameters": {}, "format": "arrow"})


def test_the_command_writes_a_stream(
    logged: Tables, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT status FROM system.mlflow.runs_latest"
    assert system_tables.sql(sql, [], "arrow") == 0
    arrow_table = pyarrow.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert arrow_table.to_pydict() == {"status": ["RUNNING"]}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(CannotRun, match="write it to a file"):
        system_tables.sql(sql, [], "arrow")


def test_what_is_liked_best_is_answered() -> None:
    assert (
        preferred_media_type("")
        == preferred_media_type("*/*")
        == preferred_media_type("text/html, */*;q=0.8")
        == "application/json"
    )
    assert preferred_media_type("text/csv;q=0.5, application/json;q=0.4") == "text/csv"
    assert preferred_media_type(f"text/csv;q=0.5, {ARROW.upper()}") == ARROW
    assert (
        preferred_media_type("text/csv;q=none")
        == preferred_media_type("text/csv;q=0")
        == "application/json"
    )
