"""Statements that want more than rows: each is refused or ended, and nothing is touched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from sql import execution, query_server_client
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

RUNS = "system.mlflow.runs_latest"

REFUSED = {
    "COPY (SELECT 1) TO '{folder}/x.csv'": "Only SELECT",
    f"COPY {RUNS} TO '{{folder}}/x.parquet'": "Only SELECT",
    "ATTACH '{folder}/x.db'": "",
    "DETACH x": "Only SELECT",
    "INSTALL httpfs": "",
    "LOAD httpfs": "",
    "PRAGMA database_list": "",
    "SET memory_limit = '100GB'": "Only SELECT",
    "RESET memory_limit": "",
    "EXPORT DATABASE '{folder}'": "",
    "CREATE TABLE x AS SELECT 1": "Only SELECT",
    f"DROP VIEW {RUNS}": "Only SELECT",
    f"DELETE FROM {RUNS}": "Only SELECT",
    f"UPDATE {RUNS} SET run_name = 'x'": "Only SELECT",
    f"INSERT INTO {RUNS} SELECT * FROM {RUNS}": "Only SELECT",
    f"SELECT 1 INTO x FROM {RUNS}": "",
    "CALL pragma_version()": "",
    "EXPLAIN SELECT 1": "Only SELECT",
    "VACUUM": "",
    "CHECKPOINT": "",
    f"SELECT 1; DROP TABLE {RUNS}": "One SELECT",
    f"SELECT run_id FROM {RUNS}; SELECT 2": "One SELECT",
    "": "One SELECT",
    "-- nothing but a comment": "One SELECT",
    "SELECT * FROM read_csv('/etc/passwd')": "",
    "SELECT * FROM read_text('/etc/passwd')": "",
    "SELECT * FROM read_parquet('{folder}/**')": "",
    "SELECT * FROM parquet_metadata('{folder}/**')": "",
    "SELECT * FROM glob('/**')": "",
    "SELECT * FROM '/etc/passwd'": "",
    "SELECT * FROM `/etc/passwd`": "There is no table",
    'SELECT * FROM "/etc/passwd"': "",
    "SELECT * FROM csv.`/etc/passwd`": "There is no table",
    "SELECT * FROM delta.`{folder}`": "There is no table",
    "SELECT * FROM duckdb_settings()": "",
    "SELECT * FROM sqlite_master": "There is no table",
    "SELECT * FROM main.information_schema.tables": "There is no table",
    "SELECT * FROM information_schema.character_sets": "There is no table",
    "SELECT * FROM information_schema.duckdb_settings": "There is no table",
    "SHOW TABLES IN main": "There is no schema main",
    "SHOW TABLES FROM information_schema": "There is no schema",
    "SHOW ALL TABLES": "SHOW knows",
    "SHOW VARIABLES": "SHOW knows",
    "DESCRIBE duckdb_settings": "There is no table",
    "DESCRIBE system.information_schema.tables": "There is no table",
    "DESCRIBE SELECT 1": "DESCRIBE takes",
    "SUMMARIZE system.mlflow.runs_latest": "",
    "SELECT * FROM mlflow.main.runs_latest": "There is no table",
    "WITH x AS (SELECT * FROM read_csv('/etc/passwd')) SELECT * FROM x": "",
    "SELECT (SELECT max(c) FROM (WITH sqlite_master AS (SELECT 1 AS c) SELECT c FROM "
    "sqlite_master)), (SELECT count(*) FROM sqlite_master)": "",
    "SELECT getenv('PATH')": "does not exist",
    "SELECT current_setting('memory_limit')": "does not exist",
    "SELECT query('SELECT 1')": "",
    "SELECT shell('id')": "does not exist",
    f"SELECT * FROM {RUNS} WHERE run_id = :missing": "has no value",
    f"SELECT ｒun_id FROM {RUNS}": "",
    "SELECT * FROM ｓystem.mlflow.runs_latest": "There is no table",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000: "",
    "SELECT 1" + " + 1" * 30_000: "",
    "SELECT 'x" * 40_000: "",
}  # fmt: skip
# A quoted name may hold anything, and some places of a statement are written without quotes.
_INJECTED = "`2)), read_text('/proc/self/environ') --`"
REFUSED |= {
    f"SELECT CAST(1 AS DECIMAL({_INJECTED})) FROM {RUNS}": "size of a type",
    f"SELECT TRY_CAST(1 AS DECIMAL({_INJECTED})) FROM {RUNS}": "size of a type",
    f"SELECT run_id::DECIMAL({_INJECTED}) FROM {RUNS}": "size of a type",
    f"SELECT CAST(1 AS DECIMAL(`10`)) FROM {RUNS}": "size of a type",
    "SELECT CAST(1 AS DECIMAL(``)) FROM traces": "Syntax error",
    f"SELECT variant_get(request_preview, '$.a', 'DECIMAL({_INJECTED.replace(chr(39), '')})') "
    "FROM traces": "size of a type",
    f"SELECT request_preview:a::DECIMAL({_INJECTED}) FROM traces": "size of a type",
    f"SELECT * FROM {RUNS} TIMESTAMP AS OF CAST(1 AS DECIMAL({_INJECTED}))": "size of a type",
    f"SELECT * FROM {RUNS} TIMESTAMP AS OF CAST(1 AS DECIMAL(`2))); SELECT 1 --`))": "size of a",
    f"SELECT * FROM {RUNS} WHERE start_time > CAST(1 AS DECIMAL({_INJECTED}))": "size of a type",
    f"SELECT start_time + INTERVAL 1 `DAY) --` FROM {RUNS}": "",
    f"SELECT extract(`YEAR FROM x) --` FROM start_time) FROM {RUNS}": "",
    f"SELECT date_trunc(`x`, start_time) FROM {RUNS}": "",
    "SELECT 1 FROM traces WHERE request_preview -> user_id = 'x'": "operator ->",
    "SELECT request_preview -> '$.a' FROM traces": "operator ->",
    "SELECT variant_get(request_preview, '$[?') FROM traces": "A path in JSON",
    "SELECT variant_get(request_preview, '$[(') FROM traces": "A path in JSON",
    "SELECT from_json(request_preview, 'a DECIMAL(`2)), read_text(1) --`)') FROM traces": "size",
    "SELECT from_json(request_preview, '`a\" := getenv(1), b` INT') FROM traces": "A field in",
    "SELECT from_json(request_preview, '`*` INT') FROM traces": "A field in",
    "SELECT from_json(request_preview, 'a INT DEFAULT (SELECT 1)') FROM traces": "A field in",
    "SELECT window(request_time, '1 hour) --') FROM traces": "is like '15 minutes'",
    "SELECT * FROM variant_explode('[1]')": "Table functions",
    "SELECT * FROM traces, LATERAL variant_explode(getenv('PATH'))": "does not exist",
    "SELECT CAST(parse_json('[]') AS ARRAY<STRUCT<`a) :=`: INT>>) FROM traces": "Not allowed",
    "SELECT window(request_time, user_id) FROM traces": "as a text",
    f"SELECT * FROM {RUNS} UNPIVOT (v FOR n IN (getenv('PATH'), run_id))": "columns of its source",
    f"SELECT * FROM {RUNS} UNPIVOT (v FOR n IN (SELECT run_id FROM {RUNS}))": "columns of its",
    "SELECT * FROM read_csv('/etc/passwd') UNPIVOT (v FOR n IN (a))": "UNPIVOT needs a table",
}
BOMBS = [
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x",
    "SELECT sum(length(repeat('x', 1000000000))) FROM (SELECT explode(sequence(1, 1000)))",
    "SELECT length(repeat(repeat('x', 1000000), 100000))",
    "SELECT explode(sequence(1, 100000000)) AS n ORDER BY md5(string(n)) LIMIT 5",
    "WITH n AS (SELECT explode(sequence(1, 1000000)) AS n) "
    "SELECT count(*) FROM n a, n b WHERE md5(string(a.n)) < md5(string(b.n))",
    "SELECT array_agg(n) FROM (SELECT explode(sequence(1, 200000000)) AS n)",
]


def test_the_hostile_are_many() -> None:
    assert len(REFUSED) + len(BOMBS) >= 50


def test_what_is_no_query_of_the_tables_is_refused(tables: Tables) -> None:
    """By the gate, in its words, or by the engine; the gate's own answer takes no process."""
    gate = pytest.importorskip("mltables.statement_check")
    passed = {}
    for sql, words in REFUSED.items():
        try:
            passed[sql] = gate.translate(sql.replace("{folder}", str(tables.folder))).sql
            message = "has no value"
        except gate.StatementRefused as refused:
            message = str(refused)
        assert words in message, sql[:100]
    for sql in passed:
        with pytest.raises(errors.InvalidParameterValue):
            tables.ask(sql.replace("{folder}", str(tables.folder)))
    assert not list(Path(tables.folder).rglob("x.*"))


@pytest.mark.parametrize("sql", BOMBS)
def test_what_would_never_end_or_fit_is_ended(
    store: Store, tables: Tables, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel's timer, which no thread can hold up, or by the end of its memory."""
    limits = pytest.importorskip("mltables.query_memory")
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "1.5")
    replies = []
    ask = execution.process.ask

    def watched(request: dict[str, Any], seconds: float) -> query_server_client.Reply:
        replies.append(ask(request, seconds))
        return replies[-1]

    monkeypatch.setattr(execution.process, "ask", watched)
    try:
        tables.ask(sql)
        message = "memory"
    except errors.InvalidParameterValue as error:
        message = error.message
    assert any(word in message for word in ("memory", "1.5 seconds", "maximum")), message
    (reply,) = replies
    if sys.platform != "darwin":
        # KiB; the process has some 200 MB before the statement runs.
        assert 10_000 < reply.memory < (limits.here().address_space + (200 << 20)) / 1024
    # The next one is answered as if nothing had been.
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "30")
    assert tables.ask("SELECT 1 AS one")["rows"] == [[1]]
