"""What a reader of some workspaces is told never depends on the rows of others: not by answers, not
by errors, whatever expressions the statement evaluates.

The same statement is asked of three sets of tables that hold the same rows of the reader's
workspaces: between them lie other rows, altered rows, and none.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import duckdb
import pytest

from mlcore import errors
from mlcore.system_tables import storage
from sql import execution
from tests.contract.hidden_rows import (
    READABLE,
    SECRET,
    TABLES,
    lakes,
)

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(900)

QUERIES = int(os.environ.get("HIDDEN_ROWS_QUERIES", "8"))
TRIES = 60
SEED = int(os.environ.get("HIDDEN_ROWS_SEED", "1"))

VIEWS = {
    "u": "trace_unified",
    "o": "otel_spans",
    "i": "trace_metadata",
    "g": "gateway_usage",
    "w": "ai_gateway_usage",
    "s": "serving_endpoint_usage",
    "n": "serving_served_entities",
    "k": "request_costs",
}
ASKED = {**TABLES, **VIEWS}
LETTERS = "".join(ASKED)


class Expressions:
    """Random expressions over rows of some tables; most of them fail on some rows."""

    def __init__(self, rng: random.Random, aliases: dict[str, str]) -> None:
        self.rng, self.aliases = rng, aliases

    def _of(self, options: dict[str, list[str]]) -> str:
        alias = self.rng.choice([key for key, table in self.aliases.items() if options[table]])
        return f"{alias}.{self.rng.choice(options[self.aliases[alias]])}"

    def column_of_text(self) -> str:
        return self._of(
            {
                "h": ["run_id", "metric_name", "workspace_id", "experiment_id", "record_id"],
                "r": ["run_name", "created_by", "status", "workspace_id", "run_id", "params['p']",
                      "tags['k']", "aggregated_metrics[0].metric_name", "experiment_id"],
                "e": ["name", "workspace_id", "experiment_id"],
                "t": ["trace_name", "session_id", "user_id", "request_preview", "workspace_id",
                      "trace_id", "trace_metadata['k']", "tags['k']", "linked_prompts[0]"],
                "a": ["assessment_name", "value", "rationale", "source_id", "workspace_id",
                      "trace_id", "metadata['k']", "error_message"],
                "p": ["name", "kind", "workspace_id", "trace_id", "span_id", "attributes['k']",
                      "status.message", "events[0].name", "links[0].attributes['k']"],
                "l": ["user_name", "address", "rpc", "entity", "workspace_id", "record_id", "hash"],
                "m": ["name", "description", "registered_model_id", "workspace_id", "tags['k']",
                      "custom_properties['k']", "external_id"],
                "v": ["name", "source", "registered_model_id", "workspace_id", "tags['k']",
                      "run_id", "user_id", "current_stage"],
                "d": ["name", "digest", "dataset_id", "workspace_id", "tags['k']", "schema",
                      "experiment_ids[0]"],
                "c": ["inputs", "outputs", "dataset_id", "workspace_id", "tags['k']", "record_id"],
                "j": ["job_name", "params", "job_id", "workspace_id", "status", "experiment_id"],
                "u": ["trace_id", "workspace_id", "tags['k']", "request", "client_request_id",
                      "spans[0].name", "assessments[0].feedback.value", "spans[0].status.message"],
                "o": ["trace_id", "workspace_id", "name", "record_id", "attributes['k']",
                      "status.message", "events[0].name"],
                "i": ["trace_id", "workspace_id", "tags['k']", "trace_metadata['k']",
                      "assessments[0].feedback.value", "client_request_id"],
                "g": ["trace_id", "workspace_id", "endpoint_id", "user_name", "caller", "model",
                      "provider", "error_message", "endpoint_name"],
                "w": ["request_id", "workspace_id", "endpoint_name", "requester", "user_agent",
                      "destination_model", "request_tags['k']", "api_type"],
                "s": ["databricks_request_id", "workspace_id", "requester", "endpoint_name",
                      "served_entity_id", "usage_context['k']"],
                "n": ["served_entity_id", "workspace_id", "endpoint_name", "entity_name",
                      "external_model_config.provider"],
                "k": ["user_name", "workspace_id", "rpc", "user_id", "experiment_id"],
            }
        )  # fmt: skip

    def time(self) -> str:
        column = self._of(
            {
                "h": ["insert_time", "metric_time"],
                "r": ["start_time", "end_time", "update_time"],
                "e": ["create_time", "update_time"],
                "t": ["request_time", "update_time"],
                "a": ["request_time", "create_time", "last_update_time"],
                "p": ["request_time", "time"],
                "l": ["event_time", "insert_time"],
                "m": ["create_time", "update_time"],
                "v": ["create_time", "last_update_time"],
                "d": ["create_time", "update_time"],
                "c": ["create_time", "update_time"],
                "j": ["create_time", "deadline"],
                "u": ["request_time", "assessments[0].create_time"],
                "o": ["time"],
                "i": ["assessments[0].create_time"],
                "g": ["request_time"],
                "w": ["event_time"],
                "s": ["request_time"],
                "n": ["change_time"],
                "k": ["event_time", "insert_time"],
            }
        )
        return self.rng.choice((column, column, f"CAST({self.column_of_text()} AS TIMESTAMP)"))

    def bound(self) -> str:
        """A condition by which rows may be left out before the statement runs."""
        time = f"CAST('2024-0{self.rng.randrange(1, 4)}-01 10:00:30' AS TIMESTAMP)"
        request_time, trace = ["request_time"], ["trace_id"]
        column = self._of(
            {
                "h": ["insert_time"],
                "r": ["start_time"],
                "e": ["create_time"],
                "t": request_time,
                "a": request_time,
                "p": request_time,
                "l": ["insert_time"],
                "m": ["create_time"],
                "v": ["create_time"],
                "d": ["create_time"],
                "c": ["create_time"],
                "j": ["create_time"],
                "u": request_time,
                "o": ["time"],
                "i": ["assessments[0].create_time"],
                "g": request_time,
                "w": ["event_time"],
                "s": request_time,
                "n": ["change_time"],
                "k": ["insert_time"],
            }
        )
        run = f"{self.rng.randrange(16):x}"
        ids = self._of(
            {"h": ["run_id"], "r": ["run_id"], "e": ["experiment_id"], "t": trace, "a": trace}
            | {"p": trace, "u": trace, "g": trace, "o": trace, "i": trace, "l": ["record_id"]}
            | {"w": ["request_id"], "s": ["databricks_request_id"], "k": ["rpc"]}
            | {"n": ["served_entity_id"]}
            | {"m": ["registered_model_id"], "v": ["registered_model_id", "run_id"]}
            | {"d": ["dataset_id"], "c": ["dataset_id"], "j": ["job_id", "experiment_id"]}
        )
        return self.rng.choice(
            (f"{column} >= {time}", f"{column} < {time}", f"{ids} > '{run}'", f"{ids} = '{run}'")
        )

    def text(self, depth: int = 2) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            return self.column_of_text()
        return self.rng.choice(
            (
                f"concat({self.text(depth - 1)}, ' ', {self.text(depth - 1)})",
                f"substr({self.text(depth - 1)}, {self.number(0)})",
                f"CAST({self.number(depth - 1)} AS STRING)",
                f"upper({self.text(depth - 1)})",
                f"CASE WHEN {self.truth(depth - 1)} THEN {self.text(0)} ELSE 'no' END",
                f"repeat('x', {self.number(0)})",
            )
        )

    def number(self, depth: int = 2) -> str:
        if depth == 0:
            return self.rng.choice((f"length({self.column_of_text()})", "1", "0", "12"))
        return self.rng.choice(
            (
                f"CAST({self.text(depth - 1)} AS INT)",
                f"CAST({self.text(depth - 1)} AS DOUBLE)",
                f"CAST({self.number(depth - 1)} AS TINYINT)",
                f"({self.number(depth - 1)} / {self.number(depth - 1)})",
                f"({self.number(depth - 1)} % (length({self.column_of_text()}) - 8))",
                f"ln({self.number(depth - 1)})",
                f"sqrt(5 - {self.number(depth - 1)})",
                f"power(1000, {self.number(depth - 1)})",
                f"year({self.time()})",
                f"CASE WHEN {self.truth(depth - 1)} THEN CAST({self.text(0)} AS INT) ELSE 1 END",
            )
        )

    def truth(self, depth: int = 2) -> str:
        if depth == 0:
            return f"{self.column_of_text()} NOT IN ('team-a', 'team-c')"
        return self.rng.choice(
            (
                f"{self.number(depth - 1)} > {self.number(depth - 1)}",
                f"{self.text(depth - 1)} < {self.text(depth - 1)}",
                f"{self.text(depth - 1)} RLIKE {self.text(0)}",
                f"CAST({self.text(depth - 1)} AS BOOLEAN)",
                f"{self.time()} > CAST({self.text(0)} AS TIMESTAMP)",
                f"NOT ({self.truth(depth - 1)})",
                f"({self.truth(depth - 1)} AND {self.truth(depth - 1)})",
                f"({self.truth(depth - 1)} OR {self.truth(depth - 1)})",
                f"{self.text(depth - 1)} IS NULL",
            )
        )


def _statement(rng: random.Random) -> str:
    aliases = {f"{letter}{rng.randrange(9)}": letter for letter in rng.sample(LETTERS, 1)}
    froms = ""
    for alias, letter in list(aliases.items()):
        froms = f"system.mlflow.{ASKED[letter]} {alias}"
    while rng.random() < 0.4 and len(aliases) < 3:
        letter = rng.choice(LETTERS)
        alias = f"{letter}{len(aliases)}x"
        aliases[alias] = letter
        made = Expressions(rng, aliases)
        kind = rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "JOIN", "LEFT ANTI JOIN"))
        equal = f"{made.column_of_text()} = {made.column_of_text()}"
        froms += f" {kind} system.mlflow.{ASKED[letter]} {alias} ON {equal}"
        if rng.random() < 0.3:
            froms += f" AND {made.truth()}"
        if kind == "LEFT ANTI JOIN":
            del aliases[alias]
    made = Expressions(rng, aliases)
    of_row = rng.choice((made.text, made.number, made.truth))()
    where = f" WHERE {made.truth()}" if rng.random() < 0.8 else ""
    if where and rng.random() < 0.4:
        where += f" AND {made.bound()}"
    other = rng.choice(LETTERS)
    inner = Expressions(rng, {"i": other})
    return rng.choice(
        (
            f"SELECT count(*) FROM {froms}{where}",
            f"SELECT {of_row} AS x, {made.number()} AS y FROM {froms}{where} LIMIT 3",
            f"SELECT {of_row} AS x FROM {froms}{where} ORDER BY {made.number()} LIMIT 5",
            f"SELECT {made.text()} AS x, max({of_row}), sum({made.number()}) FROM {froms}{where} "
            "GROUP BY 1 ORDER BY ALL",
            f"WITH c AS (SELECT {of_row} AS x FROM {froms}) SELECT count(x), min(x) FROM c",
            f"SELECT {of_row}, row_number() OVER (ORDER BY {made.number()}) FROM {froms}{where} "
            "LIMIT 4",
            f"SELECT count(*) FROM {froms} WHERE {made.text()} IN (SELECT {inner.text()} "
            f"FROM system.mlflow.{ASKED[other]} i WHERE {inner.truth()})",
            f"SELECT (SELECT {inner.number()} FROM system.mlflow.{ASKED[other]} i "
            f"WHERE {inner.truth()} LIMIT 1), {of_row} FROM {froms}{where} LIMIT 2",
            f"SELECT {made.text()} FROM {froms} UNION SELECT {inner.text()} "
            f"FROM system.mlflow.{ASKED[other]} i WHERE {inner.truth()} ORDER BY 1",
            f"SELECT array_agg({of_row}), any_value({made.text()}) FROM {froms}{where}",
        )
    )


def _answered(sql: str, folder: Path) -> str:
    """As the process of a query does, here: rows, or the error."""
    from mltables import statement_check, statement_execution  # noqa: PLC0415
    from mltables.file_pruning import evaluate_bounds  # noqa: PLC0415
    from mltables.permitted_rows import row_sources  # noqa: PLC0415

    folder.mkdir(exist_ok=True)
    try:
        prepared = statement_check.translate(sql)
        wanted = evaluate_bounds(prepared.bounds, {})
        with statement_execution.open_views(
            row_sources(prepared.reads, READABLE, folder, wanted),
            {view: prepared.reads[view] for view in VIEWS.values() if view in prepared.reads},
        ) as connection:
            return str(statement_execution.execute(connection, prepared.sql, {}))
    except statement_check.StatementRefused as refused:
        raise AssertionError(f"{sql}: {refused}") from refused
    except (duckdb.Error, RuntimeError) as error:
        # Which branch of a union fails first is a matter of chance, whatever the rows.
        text = statement_execution.error_text(error)
        return "error" if " UNION " in sql and SECRET not in text else f"error: {text}"


def test_neither_answers_nor_errors_depend_on_hidden_rows(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = pytest.importorskip("mltables.query_memory")
    # With two threads, which of several failing rows is told of is a matter of chance.
    monkeypatch.setattr(limits, "here", lambda: limits.DEPLOYED._replace(threads=1))
    rng = random.Random(SEED)
    failed = empty = 0
    for _ in range(QUERIES):
        sql = _statement(rng)
        answers = {}
        for name, lake in lakes.items():
            monkeypatch.setenv(storage.FOLDER, str(lake))
            answers[name] = _answered(sql, tmp_path / name)
        errors_told = set(answers.values())
        if len(errors_told) > 1 and all(answer.startswith("error: ") for answer in errors_told):
            # Which of two failing parts fails first is a matter of chance: each may be told of
            # each set of tables.
            for name, lake in lakes.items():
                monkeypatch.setenv(storage.FOLDER, str(lake))
                seen = {answers[name]}
                for _ in range(TRIES):
                    if seen == errors_told:
                        break
                    seen.add(_answered(sql, tmp_path / name))
                assert seen == errors_told, sql
        else:
            assert len(errors_told) == 1, sql
        assert all(SECRET not in answer.replace(sql, "") for answer in errors_told), sql
        failed += answers["others"].startswith("error")
        empty += "'rows': []" in answers["others"]
    # Else the statements would tell little.
    assert QUERIES // 5 < failed < QUERIES * 4 // 5
    assert empty < QUERIES // 2


def test_the_engine_gets_the_same_bytes_whatever_is_hidden(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns, and some: values that are equal and written differently have an order, too."""
    statement_check = pytest.importorskip("mltables.statement_check")
    permitted = pytest.importorskip("mltables.permitted_rows")
    bounds = pytest.importorskip("mltables.file_pruning")
    definitions = pytest.importorskip("mltables.table_definitions")
    within = "run_id > '3' AND metric_step >= 0 AND run_id <= 'c'"
    for columns in ("*", "workspace_id", "metric_value", "status, end_time", "run_id",
                    "total_cost, tags", "numeric_value"):  # fmt: skip
        tables = [table for name, table in TABLES.items() if columns == "*" or name in columns]
        tables = tables if columns == "*" else [
            table.name for table in definitions.TABLES
            if {part.strip() for part in columns.split(",")} <= {name for name, *_ in table.columns}
        ]  # fmt: skip
        for table in tables:
            where = f" WHERE {within}" if columns == "run_id" else ""
            prepared = statement_check.translate(
                f"SELECT {columns} FROM system.mlflow.{table}{where}"
            )
            wanted = bounds.evaluate_bounds(prepared.bounds, {})
            held = {}
            for name, lake in lakes.items():
                monkeypatch.setenv(storage.FOLDER, str(lake))
                folder = tmp_path / f"{columns[:9]}-{table}-{name}"
                folder.mkdir()
                (source,) = permitted.row_sources(prepared.reads, READABLE, folder, wanted)
                (file,) = source.files
                held[name] = Path(file).read_bytes()
                assert SECRET.encode() not in held[name]
            assert held["others"] == held["altered"] == held["alone"], (table, columns)


HIDDEN = "b.workspace_id NOT IN ('team-a', 'team-c')"
ORACLES = {
    "a cast": f"CAST(CASE WHEN {HIDDEN} THEN b.run_name || b.params['p'] ELSE '1' END AS INT) = 1",
    "memory": f"length(CASE WHEN {HIDDEN} THEN repeat(b.run_name, 200000000) ELSE 'x' END) = 1",
    "a range": f"CAST(CASE WHEN {HIDDEN} THEN 300 + length(b.run_name) ELSE 1 END AS TINYINT) = 1",
}  # fmt: skip


@pytest.mark.parametrize("name", ORACLES)
def test_a_condition_on_hidden_rows_tells_nothing(
    lakes: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the process that answers callers."""
    sql = (
        "SELECT count(*) FROM system.mlflow.run_metrics_history a "
        f"JOIN system.mlflow.runs_latest b ON a.run_id = b.run_id WHERE {ORACLES[name]}"
    )
    answers = []
    for lake in lakes.values():
        monkeypatch.setenv(storage.FOLDER, str(lake))
        try:
            answers.append(execution.run_query({"sql": sql, "workspaces": list(READABLE)}))
        except errors.InvalidParameterValue as error:
            answers.append({"error": error.message})
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["rows"][0][0] > 0


def test_who_may_read_nothing_reads_nothing(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(storage.FOLDER, str(lakes["others"]))
    for table in TABLES.values():
        request = {"sql": f"SELECT count(*) FROM system.mlflow.{table}"}
        assert execution.run_query({**request, "workspaces": []})["rows"] == [[0]]
        assert execution.run_query({**request, "workspaces": None})["rows"][0][0] > 0
