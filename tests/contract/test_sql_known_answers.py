"""SQL over the system tables answers what Databricks documents, where Spark's answers in
``test_sql_spark.py`` have no such statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.spark_engine import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.connection.close()


def test_one_name_for_two_parameters_is_refused(tmp_path: Path) -> None:
    from mltables.statement_execution import prepare_rows  # noqa: PLC0415

    for given in ({"d.min": 1, "d_min": 2}, {"d_min": 2, "d.min": 1}):
        request = {"sql": "SELECT :d.min", "parameters": given, "seconds": 0}  # without a timer
        refused = prepare_rows(request, tmp_path)
        assert refused == {"error": "The parameter 'd_min' has two values."}


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT (SELECT count(*) FROM runs_latest WHERE status <> 'a status of no run') / "
            "(SELECT count(*) FROM runs_latest WHERE status <> 'another status of no run')",
            [[1.0]],
        ),
        (
            "SELECT count(*) - (SELECT count(*) FROM runs_latest WHERE status <> 'a status of no "
            "run' AND status <> 'another status of no run') FROM runs_latest",
            [[0]],
        ),
        (
            "SELECT * FROM (SELECT -1 AS x UNION ALL SELECT -1 UNION ALL SELECT 1) "
            "PIVOT (count(*) FOR x IN (-1, 1))",
            [{"-1": 2, "1": 1}],
        ),
        (
            "SELECT * FROM (SELECT true AS x) PIVOT (count(*) FOR x IN (true, false, NULL))",
            [{"true": 1, "false": None, "null": None}],
        ),
        (
            "SELECT concat_ws(s, 'a', 'b'), concat_ws(s, array()) FROM VALUES ('-'), (NULL) t(s) "
            "ORDER BY s DESC",
            [["a-b", ""], [None, None]],
        ),
        (
            "SELECT sum(CAST(v AS INT)) FILTER (WHERE k), count(DISTINCT CAST(v AS INT)) "
            "FILTER (WHERE k), max_by(v, CAST(v AS INT)) FILTER (WHERE k), "
            "percentile(CAST(v AS INT), CAST('0.5' AS DOUBLE)) FILTER (WHERE k) "
            "FROM VALUES (true, '1'), (false, 'x') t(k, v)",
            [[1, 1, "1", 1.0]],
        ),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t WHERE x < 5) "
            "SELECT count(*) FROM t TABLESAMPLE (100 PERCENT)",
            [[5]],
        ),
        (
            "SELECT schema_of_json('[12345678901234567890, 123456789012345678901]')",
            [["ARRAY<DECIMAL(21,0)>"]],
        ),
    ],
)
def test_statements_with_known_answers(engine: Engine, sql: str, rows: list[Any]) -> None:
    answer = engine.ask(sql)
    if isinstance(rows[0], dict):
        assert answer["columns"] == list(rows[0])
        rows = [list(rows[0].values())]
    assert answer["rows"] == rows


def test_samples_are_of_rows_of_the_sampled_query() -> None:
    """Neither of joined rows, nor of those before DISTINCT and UNION."""
    from mltables.statement_execution import execute, open_views  # noqa: PLC0415

    translate = pytest.importorskip("mltables.statement_check").translate
    numbers = "(SELECT explode(sequence(1, 5000)) AS x)"
    twice = f"SELECT x FROM {numbers} CROSS JOIN VALUES (1), (2), (3), (4), (5) v(n)"
    for sql in (
        f"WITH t AS (SELECT x FROM {numbers} n TABLESAMPLE (10 PERCENT)) "
        "SELECT count(DISTINCT x) FROM t CROSS JOIN VALUES (1), (2), (3), (4), (5) v(n)",
        f"SELECT count(*) FROM (SELECT DISTINCT x FROM ({twice}) r) t TABLESAMPLE (10 PERCENT)",
        f"WITH t AS ({twice} UNION {twice}) SELECT count(*) FROM t TABLESAMPLE (10 PERCENT)",
    ):
        prepared = translate(sql)
        with open_views([], {}, prepared.sql) as connection:
            ((count,),) = execute(connection, prepared.sql, {})["rows"]
        assert 300 < count < 700, sql


def test_a_long_text_is_not_repeated_without_end(engine: Engine) -> None:
    patterns = ", ".join(["''"] * 200)
    long = f"CASE WHEN '{'a' * 2000}' LIKE ANY ({patterns}) THEN run_id END"
    keys = ", ".join(f"'k{key}'" for key in range(50))
    for repeated in (
        f"({long}) LIKE ANY ({patterns})",
        f"decode({long}, {', '.join(['1'] * 200)})",
        f"json_tuple({long}, {keys})",
    ):
        assert engine.failure(f"SELECT {repeated} FROM runs_latest") == "The statement is too long."


def test_separators_within_separators_are_written_once(engine: Engine) -> None:
    sql = "','"
    for _ in range(14):
        sql = f"concat_ws({sql}, run_id, 'b')"
    assert len(engine.gate.translate(f"SELECT {sql} FROM runs_latest").sql) < 10_000
    assert engine.failure(f"SELECT {sql} FROM runs_latest") is None
