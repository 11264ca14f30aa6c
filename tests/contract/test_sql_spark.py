"""SQL over the system tables answers what Spark does.

The answers in ``tests/contract/spark`` are those of Spark 4.0.1 with ``spark.sql.ansi.enabled``, as
Databricks has it: of expressions, and of statements over three small tables. ``refused`` marks what
has no translation; it may raise a clear error, and never answer anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.spark_engine import ANSWERS, Engine


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ANSWERS / name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.connection.close()


def _alike(value: Any) -> Any:
    """With numbers as floats of 13 digits, and an interval in seconds."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return float(f"{value:.13g}")
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+) (\d+):(\d+):([\d.]+)", value)):
        days, hours, minutes, seconds = map(float, match.groups())
        return float(f"{((days * 24 + hours) * 60 + minutes) * 60 + seconds:.13g}")
    if isinstance(value, list):
        return [_alike(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"interval"}:
            return _alike(value["interval"])
        return {key: _alike(item) for key, item in value.items()}
    return value


def _rows(sql: str, rows: list[Any]) -> list[Any]:
    alike = [_alike(row) for row in rows]
    return alike if "ORDER BY" in sql.upper() else sorted(alike, key=str)


def _kind(text: str) -> str:
    """A type without what differs on purpose: decimals have other sizes, or are doubles."""
    plain = re.sub(r"\s", "", text.lower())
    plain = re.sub(r"decimal\(\d+,\d+\)", "double", plain)
    return plain.replace("intervalday", "interval").replace("intervaltosecond", "interval")


def test_expressions_answer_what_spark_answers(engine: Engine) -> None:
    """The value, or an error where Spark has one; and the name of the column."""
    cases = _lines("expressions.jsonl")
    assert len(cases) > 630
    wrong = []
    for case in cases:
        sql = f"SELECT {case['sql']}"
        if "error" in case or case.get("refused"):
            if not engine.failure(sql):
                wrong.append((sql, engine.ask(sql)["rows"], case))
            continue
        answer = engine.ask(sql)
        if _alike(answer["rows"]) != [[_alike(case["answer"])]]:
            wrong.append((sql, answer["rows"], case["answer"]))
        if "name" in case and answer["columns"] != [case["name"]]:
            wrong.append((sql, answer["columns"], case["name"]))
    assert not wrong


def test_statements_answer_what_spark_answers(engine: Engine) -> None:
    cases = _lines("statements.jsonl")
    assert len(cases) > 90
    wrong = []
    for case in cases:
        sql = case["sql"]
        if "error" in case or case.get("refused"):
            if not engine.failure(sql):
                wrong.append((sql, engine.ask(sql)["rows"], case))
            continue
        answer = engine.ask(sql)
        if _rows(sql, answer["rows"]) != _rows(sql, case["rows"]):
            wrong.append((sql, answer["rows"], case["rows"]))
        if "names" in case and answer["columns"] != case["names"]:
            wrong.append((sql, answer["columns"], case["names"]))
        if list(map(_kind, answer["types"])) != list(map(_kind, case["types"])):
            wrong.append((sql, answer["types"], case["types"]))
    assert not wrong


def test_little_of_spark_is_refused() -> None:
    """What is compared is not emptied by marking it as refused."""
    cases = _lines("expressions.jsonl") + _lines("statements.jsonl")
    assert sum("refused" in case for case in cases) < 10


def test_functions_of_duckdb_alone_are_refused(engine: Engine) -> None:
    """Whatever DuckDB has and the tables of functions do not list: none is passed on."""
    from mltables.dialect import (  # noqa: PLC0415
        aggregate_functions,
        collection_functions,
        function_list,
        macros,
        text_functions,
        time_functions,
    )

    listed = {
        *function_list.SIMPLE, *function_list.CASTS,
        *function_list.WINDOW, *function_list.GENERATORS,
        *macros.FUNCTIONS, *aggregate_functions.AGGREGATES, *aggregate_functions.WITHIN,
        *collection_functions.SPECIAL, *text_functions.SPECIAL, *time_functions.SPECIAL,
        "extract", "substr", "substring", "position", "trim", "inline", "inline_outer",
        "stack", "json_tuple",
    }  # fmt: skip
    rows = engine.connection.execute("SELECT DISTINCT function_name FROM duckdb_functions()")
    names = {name for (name,) in rows.fetchall() if re.fullmatch(r"[a-z_0-9]+", name)}
    others = sorted(names - listed)
    assert len(others) > 300
    for name in others:
        with pytest.raises(engine.gate.StatementRefused):
            engine.gate.translate(f"SELECT {name}(run_id) FROM system.mlflow.runs_latest")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1/0", "DIVIDE_BY_ZERO"),
        ("SELECT CAST('x' AS INT)", "CAST_INVALID_INPUT"),
        ("SELECT max(x) - x FROM VALUES (date'2024-01-01') t(x) GROUP BY x", "datediff"),
        ("SELECT sum(1) OVER (PARTITION BY CAST('x' AS INT))", "value 'x' of the type \"STRING\""),
        ("SELECT CAST('x' AS INT) IS NULL", "CAST_INVALID_INPUT"),
        ("SELECT CASE WHEN x > 0 THEN 'none' ELSE x END FROM VALUES (1) t(x)", "Conversion Error"),
        ("SELECT arrays_zip(array(1), NULL)", "takes lists"),
        ("SELECT min() - min()", "min() takes 1 arguments"),
        (f"SELECT json_tuple('', {', '.join(['$a$'] * 51)})".replace("$", "'"), "up to 50 keys"),
        ("SELECT stack(0, 1)", "a number from 1 to 1000"),
        ("SELECT strftime(now(), '%Y')", "The function strftime() does not exist here"),
        ("SELECT list_sum(array(1))", "list_sum() does not exist"),
        ("SELECT regexp_replace('a', 'a', run_id) FROM system.mlflow.runs_latest", "as a text"),
        ("SELECT explode(array(1)), explode(array(2))", "at most one explode()"),
        ("SELECT 1 + explode(array(1))", "stands alone"),
        ("SELECT date_format(now(), 'QQQ')", "may not have QQQ"),
        ("SELECT params:lr FROM system.mlflow.runs_latest", "get_json_object"),
        ("SELECT INTERVAL '1-2' DAY TO HOUR", "interval of several units"),
        ("SELECT row_number()", "needs OVER"),
        ("SELECT * FROM (SELECT * FROM runs_latest) UNPIVOT (v FOR n IN (a))", "names its columns"),
        ("SELECT * FROM runs_latest UNPIVOT (v FOR n IN (1))", "columns of its source"),
        ("SELECT * FROM runs_latest UNPIVOT ((v, w) FOR n IN (a))", "columns of its source"),
        ("SELECT window(now(), '2 hours', '1 hour')", "Windows that overlap"),
        ("SELECT window(now(), '1 month')", "is like '15 minutes'"),
        ("SELECT window(now(), '0 days')", "greater than zero"),
        ("SELECT 1 UNION SELECT 2 ORDER BY window(now(), '1 day')", "stands in a SELECT"),
        ("SELECT window(now(), '1 day'), window(now(), '1 hour')", "has one window()"),
        ("SELECT parse_json('x')", "try_parse_json()"),
        ("SELECT variant_explode('[1]')", "follows LATERAL"),
        ("SELECT from_json('{}', run_id) FROM runs_latest", "as a text"),
        ("SELECT from_json('{}', 'a TINYINT')", "cannot make TINYINT"),
        ("SELECT from_json('{}', 'a INT', map('mode', 'FAILFAST'))", "takes 2 arguments"),
        ("SELECT from_json('{}', 'a INT>, b STRUCT<c: INT')", "is like 'a INT"),
        ("SELECT from_json('{}', 'a INT, A INT')", "twice"),
        ("SELECT from_json('{}', 'a INT) more (b')", "is like 'a INT"),
        ("SELECT from_json('{}', 'a DECIMAL(39, 2)')", "1 to 38 digits"),
        ("SELECT from_json('{}', 'a DECIMAL(2, 3)')", "no larger scale"),
        ("SELECT from_json(params, 'a INT') FROM runs_latest", "takes a text"),
        (f"SELECT from_json('', 'a {'ARRAY<' * 9}INT{'>' * 9}')", "nested too deeply"),
        ("SELECT array(1, 2)[0]", "use get(array(…), 0)"),
        ("SELECT sha2('a', 512)", "only 256 bits"),
        ("SELECT hash(1.5D)", "hash() takes texts"),
        ("SELECT 'a' LIKE ANY (SELECT 'a')", "written in a list"),
        ("SELECT 'a' LIKE ALL ()", "written in a list"),
        ("SELECT grouping_id() FROM VALUES (1) t(a) GROUP BY GROUPING SETS ((a))", "GROUP BY"),
        ("SELECT :d.min(1)", "Functions have no schema"),
        ("SELECT sum(x) FROM VALUES ('a') t(x)", "The value 'a' of the type"),
        ("SELECT sum(x) FROM VALUES (9223372036854775807), (1) t(x)", "ARITHMETIC_OVERFLOW"),
        ("SELECT array_sort(array(1, 2), (a, b) -> NULL)", "COMPARATOR_RETURNS_NULL"),
        ("SELECT typeof(named_struct('a', 1))", "typeof() does not take"),
        ("SELECT typeof(array(array(1)))", "typeof() does not take"),
        ("SELECT split('a', 'b', 1001)", "up to 1000"),
        ("SELECT split('a', 'b', length('ab'))", "up to 1000"),
        ("SELECT split('ab', '', 2)", "an empty text"),
        ("SELECT str_to_map('a  1', ',', ' *')", "an empty text"),
        (r"SELECT split('ab cd', '\\b', 2)", "an empty text"),
        ("SELECT to_json(1)", "does not take arguments of these types"),
    ],
)
def test_what_is_refused_is_told_clearly(engine: Engine, sql: str, words: str) -> None:
    failure = engine.failure(sql) or "answered"
    assert words in failure
    assert "spark_" not in failure
    assert "inner_" not in failure


def test_aliases_of_aliases_do_not_grow_without_end(engine: Engine) -> None:
    """Each alias mentions the one before twice, so copies of copies would double each time."""
    columns = [f"a{n - 1} + a{n - 1} AS a{n}" for n in range(1, 60)]
    sql = (
        f"SELECT CAST(run_id AS INT) AS a0, {', '.join(columns)} FROM runs_latest ORDER BY a59 + 1"
    )
    assert "compute it in a subquery" in (engine.failure(sql) or "")
    few = "SELECT CAST('1' AS INT) AS a0, a0 + a0 AS a1, a1 + a1 AS a2 ORDER BY a2 * -1"
    assert engine.ask(few)["rows"] == [[1, 2, 4]]


def test_a_key_twice_fails_no_other_row(engine: Engine) -> None:
    """Otherwise whoever logs such a text could fail the queries of others."""
    texts = 'SELECT explode(array(\'{"a":1,"a":2}\', \'{"a":3}\')) AS x'
    for made in (
        "from_json(x, 'MAP<STRING, INT>')",
        "from_json(x, 'a INT').a",
        "CAST(parse_json(x) AS MAP<STRING, STRING>)",
    ):
        assert len(engine.ask(f"SELECT {made} FROM ({texts})")["rows"]) == 2


def test_an_alias_that_is_a_column_again_keeps_its_name(engine: Engine) -> None:
    answer = engine.ask("SELECT CAST('1' AS INT) AS n, n, n + 1, n AS m")
    assert answer["columns"] == ["n", "n", "(n + 1)", "m"]
    assert answer["rows"] == [[1, 1, 2, 1]]


def test_parameters_have_the_types_of_their_values(engine: Engine) -> None:
    sql = "SELECT :n + 1, CAST(:since AS TIMESTAMP), :text || 'x', params['lr'] = :lr"
    answer = engine.ask(
        f"{sql} FROM system.mlflow.runs_latest WHERE run_id = 'r1'",
        n=1, since="2024-01-05", text="a", lr="0.1",
    )  # fmt: skip
    assert answer["rows"] == [[2, "2024-01-05T00:00:00.000Z", "ax", True]]


def test_members_of_a_range_are_parameters(engine: Engine) -> None:
    """As dashboards of Databricks name the ends of a range of dates."""
    sql = (
        "SELECT count(*) FROM runs_latest WHERE start_time >= :days.min AND start_time < :days.max"
    )
    answer = engine.ask(sql, days_min="2024-03-01", days_max="2024-03-02")
    assert answer["rows"] == [[1]]


def test_a_column_is_left_to_the_other_view_only_where_both_are_joined(engine: Engine) -> None:
    joined = (
        "SELECT endpoint_name, count(*) AS m FROM system.serving.endpoint_usage u "
        "JOIN system.serving.served_entities e USING (served_entity_id) GROUP BY endpoint_name"
    )
    alone = "SELECT endpoint_name, count(*) AS n FROM system.serving.endpoint_usage GROUP BY 1"
    sql = f"WITH a AS ({alone}), j AS ({joined}) SELECT * FROM a JOIN j USING (endpoint_name)"
    assert engine.ask(f"{sql} ORDER BY 1")["columns"] == ["endpoint_name", "n", "m"]
    correlated = (
        "SELECT (SELECT max(t.name) FROM VALUES ('x') t(name) WHERE t.name = endpoint_name) "
        "FROM system.serving.endpoint_usage u "
        "JOIN system.serving.served_entities e USING (served_entity_id)"
    )
    for statement, columns in (
        (joined, False), (alone, True), (sql, True), (correlated, False),
    ):  # fmt: skip
        reads = engine.gate.translate(statement).reads["serving_endpoint_usage"]
        assert ("endpoint_name" in reads) == columns


def test_identifier_names_only_what_a_plain_name_may(engine: Engine) -> None:
    for sql in (
        "SELECT run_id FROM IDENTIFIER('{}') LIMIT 1",
        "SELECT IDENTIFIER('{}') FROM system.mlflow.runs_latest LIMIT 1",
    ):
        for name in (
            "/etc/passwd", "`/etc/passwd`", "a.parquet", "`a.parquet`", "inner_spans", "run_id) --",
            "duckdb_settings()", "`duckdb_settings`", "information_schema.tables", "", "``", "a..b",
            "system.mlflow.runs_latest.run_id.x.y",
        ):  # fmt: skip
            assert engine.failure(sql.format(name)), (sql, name)
    assert engine.failure("SELECT * FROM IDENTIFIER(:name)")
    assert engine.ask("SELECT count(*) FROM IDENTIFIER('system.' || 'mlflow.RUNS_LATEST')")["rows"]


def test_a_sample_has_about_its_part_of_the_rows(engine: Engine) -> None:
    rows = "(SELECT explode(sequence(1, 20000)) AS x LIMIT 20000)"
    sql = f"SELECT count(*) FROM {rows} TABLESAMPLE (25 PERCENT) WHERE x > 0 OR x < 0"
    ((count,),) = engine.ask(sql)["rows"]
    assert 4_500 < count < 5_500
    for sample in ("BUCKET 1 OUT OF 2", "101 PERCENT", "1 PERCENT) REPEATABLE (1"):
        assert "TABLESAMPLE" in (
            engine.failure(f"SELECT 1 FROM {rows} TABLESAMPLE ({sample})") or ""
        )


def test_a_random_condition_is_thrown_for_the_rows_of_its_own_select(engine: Engine) -> None:
    numbers = "SELECT explode(sequence(1, 20000)) AS x"
    for rows in (
        f"(SELECT DISTINCT x % 1000 AS x FROM ({numbers}))",
        f"(SELECT x % 1000 AS x FROM ({numbers}) UNION SELECT 1)",
    ):
        ((count,),) = engine.ask(f"SELECT count(*) FROM {rows} WHERE rand() < 0.1")["rows"]
        assert 40 < count < 200


def test_types_are_told_in_words_of_databricks(engine: Engine) -> None:
    answer = engine.ask("SELECT * FROM system.mlflow.runs_latest")
    assert dict(zip(answer["columns"], answer["types"], strict=True)) == {
        "account_id": "STRING",
        "update_time": "TIMESTAMP",
        "delete_time": "TIMESTAMP",
        "workspace_id": "STRING",
        "run_id": "STRING",
        "experiment_id": "STRING",
        "created_by": "STRING",
        "start_time": "TIMESTAMP",
        "end_time": "TIMESTAMP",
        "run_name": "STRING",
        "status": "STRING",
        "params": "MAP<STRING,STRING>",
        "tags": "MAP<STRING,STRING>",
        "aggregated_metrics": "ARRAY<STRUCT<metric_name:STRING,latest_value:DOUBLE,"
        "min_value:DOUBLE,max_value:DOUBLE>>",
    }


def test_tools_find_tables_and_columns(engine: Engine) -> None:
    names = [
        *("ai_gateway_usage", "assessments", "audit_log"),
        *("evaluation_dataset_records", "evaluation_datasets"),
        *("experiments_latest", "gateway_usage", "jobs", "model_versions", "otel_spans"),
        *("registered_models", "request_costs"),
        *("run_metrics_history", "runs_latest", "serving_endpoint_usage"),
        *("serving_served_entities", "spans"),
        *("trace_metadata", "trace_unified", "traces"),
    ]
    assert [row[1] for row in engine.ask("SHOW TABLES IN system.mlflow")["rows"]] == names
    assert [row[1] for row in engine.ask("SHOW TABLES LIKE 'run*'")["rows"]] == [
        "run_metrics_history",
        "runs_latest",
    ]
    listed = engine.ask(
        "SELECT table_name FROM system.information_schema.tables t WHERE table_schema = 'mlflow'"
    )
    assert sorted(row[0] for row in listed["rows"]) == names
    for name in names:
        columns = engine.ask(f"SELECT * FROM system.mlflow.{name}")
        expected = [
            [column, kind.lower()]
            for column, kind in zip(columns["columns"], columns["types"], strict=True)
        ]
        for sql in (f"DESCRIBE TABLE system.mlflow.{name}", f"-- columns\ndesc {name};"):
            assert [row[:2] for row in engine.ask(sql)["rows"]] == expected
        shown = engine.ask(f"SHOW COLUMNS IN system.mlflow.{name}")["rows"]
        assert shown == [[column] for column, _ in expected]
        answer = engine.ask(
            "SELECT column_name, full_data_type FROM information_schema.columns "
            f"WHERE table_name = '{name}' ORDER BY ordinal_position"
        )
        assert answer["rows"] == expected


def test_a_row_that_is_too_large_is_told(engine: Engine) -> None:
    from mltables import result_encoding  # noqa: PLC0415

    cursor = engine.connection.execute("SELECT repeat('x', 5000) UNION ALL SELECT 'y'")
    with pytest.raises(
        result_encoding.TooLarge, match="One row of the result has more than 4000 bytes"
    ):
        result_encoding.encode_json(cursor, 10, 4000)
    cursor = engine.connection.execute("SELECT repeat('x', 3000) FROM range(2)")
    encoded = result_encoding.encode_json(cursor, 10, 4000)
    assert (len(encoded["rows"]), encoded["truncated"]) == (1, True)
