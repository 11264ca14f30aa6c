"""Files that a statement cannot want are left out, and its answer stays what it is."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mlcore.system_tables import storage
from tests.contract import hidden_rows as hidden

lakes = hidden.lakes

QUERIES = int(os.environ.get("BOUNDS_QUERIES", "6"))
SINCE = "2024-02-01 10:00:30"


def _read(
    sql: str, folder: Path, workspaces: tuple[str, ...] | None, *, bounded: bool, **given: Any
) -> tuple[str, int]:
    """The answer, and how many files were read for it."""
    from mltables import statement_check, statement_execution  # noqa: PLC0415
    from mltables.file_pruning import evaluate_bounds  # noqa: PLC0415
    from mltables.permitted_rows import row_sources  # noqa: PLC0415

    folder.mkdir(exist_ok=True)
    prepared = statement_check.translate(sql)
    wanted = evaluate_bounds(prepared.bounds, given) if bounded else {}
    read = row_sources(prepared.reads, workspaces, folder, wanted)
    with statement_execution.open_views(read) as connection:
        answer = statement_execution.execute(connection, prepared.sql, {"parameters": given})
    return str(answer), sum(len(source.files) for source in read)


def _bounds(rng: random.Random, alias: str, table: str, run: str) -> str:
    times = {"h": "insert_time", "r": "start_time", "e": "update_time"}
    time = times.get(table, "request_time")
    own = "run_id" if table in "hr" else "trace_id"
    name = "experiment_id" if table == "e" else rng.choice((own, "experiment_id"))
    moment = rng.choice(
        (
            f"CAST('2024-0{rng.randrange(1, 5)}-01 10:00:30' AS TIMESTAMP)",
            f"'2024-0{rng.randrange(1, 5)}-02'",
            f"DATE '2024-0{rng.randrange(1, 5)}-02'",
            "TIMESTAMP '2024-02-02 10:00:07' - INTERVAL 1 DAY",
            "date_add(DATE '2024-01-02', 31)",
        )
    )
    condition = rng.choice(
        (
            f"{alias}.{time} {rng.choice(('>=', '>', '<', '<='))} {moment}",
            f"{alias}.{time} BETWEEN {moment} AND TIMESTAMP '2024-03-01 10:00:00'",
            f"{alias}.{name} {rng.choice(('>=', '>', '<', '<=', '='))} '{run}'",
            f"{alias}.{name} IN ('{run}', '{run[:3]}', '7')",
            f"NOT ({alias}.{name} = '{run}')",
            f"({alias}.{name} = '{run}' OR {alias}.{time} < {moment})",
            f"{alias}.{name} BETWEEN '{run[:1]}' AND '{run}'",
            f"'{run}' <= {alias}.{name}",
        )
    )
    return (
        condition if rng.random() < 0.5 else f"({condition}) AND {_bounds(rng, alias, table, run)}"
    )


def _statement(rng: random.Random, runs: list[str]) -> str:
    left, right = rng.choice("hrta"), rng.choice("hreta")
    froms = f"system.mlflow.{hidden.TABLES[left]} a"
    kind = rng.choice(("", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"))
    run = rng.choice(runs)
    where = _bounds(rng, "a", left, run)
    if not kind:
        where = where.replace("a.", rng.choice(("a.", "")))
    else:
        keys = {frozenset("hr"): "run_id", frozenset("ta"): "trace_id"}
        key = next((key for both, key in keys.items() if {left, right} <= both), "experiment_id")
        froms += f" {kind} system.mlflow.{hidden.TABLES[right]} b ON a.{key} = b.{key}"
        if kind != "LEFT SEMI JOIN" and rng.random() < 0.6:
            bounds = _bounds(rng, "b", right, run)
            where = bounds if rng.random() < 0.3 else f"{where} AND {bounds}"
    inner = f"SELECT count(*) FROM system.mlflow.runs_latest c WHERE {_bounds(rng, 'c', 'r', run)}"
    return rng.choice(
        (
            f"SELECT count(*), min(a.workspace_id) FROM {froms} WHERE {where}",
            f"SELECT a.experiment_id, count(*) FROM {froms} WHERE {where} GROUP BY 1 ORDER BY 1",
            f"SELECT ({inner}), count(*) FROM {froms} WHERE {where}",
            f"SELECT count(*) FROM {froms} WHERE {where} UNION ALL {inner} ORDER BY 1",
            f"WITH x AS (SELECT a.* FROM {froms} WHERE {where}) SELECT count(*) FROM x, x y",
        )
    )


@pytest.mark.parametrize("workspaces", [None, hidden.READABLE])
def test_an_answer_is_the_same_with_fewer_files(
    lakes: dict[str, Path],
    workspaces: tuple[str, ...] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(storage.FOLDER, str(lakes["others"]))
    nine = "SELECT run_id FROM system.mlflow.runs_latest LIMIT 9"
    listed = f"SELECT collect_list(run_id) AS ids FROM ({nine})"
    runs = [
        part
        for part in _read(listed, tmp_path, None, bounded=False)[0].split("'")
        if len(part) == 12
    ]
    assert len(runs) == 9
    rng = random.Random(5)
    files = fewer = 0
    for _ in range(QUERIES):
        sql = _statement(rng, runs)
        try:
            expected, all_files = _read(sql, tmp_path, workspaces, bounded=False)
        except duckdb.BinderException:  # a time and a text that the engine does not compare
            continue
        answer, read_files = _read(sql, tmp_path, workspaces, bounded=True)
        assert answer == expected, sql
        files, fewer = files + all_files, fewer + read_files
    if workspaces is None:
        assert fewer < 0.9 * files


@pytest.mark.parametrize(
    ("where", "understood"),
    [
        ("start_time >= CAST(:since AS TIMESTAMP)", True),
        ("r.start_time > :since AND r.run_name = 'x'", True),
        ("r.start_time >= now() - INTERVAL 7 DAYS", True),
        ("r.start_time >= date_sub(current_date(), 7)", True),
        ("run_id = :run", True),
        ("run_id IN (:run, 'b')", True),
        ("start_time < now()", False),
        ("run_id = upper('b')", False),
        ("run_id = (SELECT max(run_id) FROM system.mlflow.runs_latest)", False),
        ("run_id = :run OR status = 'FAILED'", False),
        ("NOT run_id = :run", False),
        ("run_id = :number", False),
        ("run_id = :nothing", False),
        ("start_time >= CAST('soon' AS TIMESTAMP)", False),
        ("upper(run_id) = 'B'", False),
        ("x.run_id = 'b'", False),
    ],
)
def test_which_conditions_are_understood(where: str, *, understood: bool) -> None:
    statement_check = pytest.importorskip("mltables.statement_check")
    bounds = pytest.importorskip("mltables.file_pruning")
    prepared = statement_check.translate(f"SELECT 1 FROM system.mlflow.runs_latest r WHERE {where}")
    given = {"since": SINCE, "run": "b", "number": 5, "nothing": None}
    wanted = bounds.evaluate_bounds(prepared.bounds, given)
    assert any(map(any, wanted.values())) is understood


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM spans AS s(a, b, c, d, e, f, g, h, i, j, k, parent_span_id, m, n, o, p) "
        "WHERE parent_span_id IS NULL",
        "SELECT 1 FROM spans AS s(a, b, c, d, e, trace_id, g, h, i, j, k, l, m, n, o, p) "
        "WHERE trace_id = 'x'",
        "SELECT 1 FROM traces t JOIN spans s RIGHT JOIN traces r ON s.trace_id = r.trace_id "
        "ON t.trace_id = r.trace_id WHERE s.parent_span_id IS NULL",
    ],
)
def test_a_column_that_is_another_or_absent_bounds_nothing(sql: str) -> None:
    statement_check = pytest.importorskip("mltables.statement_check")
    assert not any(statement_check.translate(sql).bounds["spans"])


def test_the_values_of_a_reader_meet_rows_that_the_reader_may_read(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The engine evaluates them after the workspaces are chosen, and skips nothing by them."""
    permitted = pytest.importorskip("mltables.permitted_rows")
    bounds = pytest.importorskip("mltables.file_pruning")
    statement_check = pytest.importorskip("mltables.statement_check")
    database = pytest.importorskip("mltables.duckdb_connection")
    monkeypatch.setenv(storage.FOLDER, str(lakes["others"]))
    prepared = statement_check.translate(
        "SELECT run_name FROM system.mlflow.runs_latest "
        "WHERE run_id = 'needle' AND start_time > '2031-05-05'"
    )
    wanted = bounds.evaluate_bounds(prepared.bounds, {})["runs_latest"]
    (source,) = permitted.row_sources(prepared.reads, None, tmp_path)
    rows = permitted.permitted_relation(
        source, ["run_id", "run_name", "start_time"], ["team-a"], wanted
    )
    with database.connect(None) as connection:
        ((_, plan),) = connection.execute(f"EXPLAIN SELECT run_name FROM {rows}").fetchall()
    above, limit, below = plan.lower().partition("limit")
    assert limit
    assert "needle" in above
    assert "2031" in above
    assert "team-a" in below
    assert "needle" not in below
    assert "2031" not in below


@pytest.mark.parametrize(
    ("sql", "bounds"),
    [
        ("SELECT trace_id FROM trace_unified WHERE "
         "exists(spans, s -> get(s.events, 0).name = 'retried')",
         ["inner_attribute_event_names IS NOT NULL"]),
        ("SELECT span_id FROM spans WHERE attributes:`mlflow.spanType`::STRING = 'TOOL'",
         ["inner_attribute_mlflow_spantype = 'TOOL'"]),
        ("SELECT s.span_id FROM spans s WHERE s.attributes['gen_ai.tool.name'] IS NOT NULL",
         ["inner_attribute_gen_ai_tool_name IS NOT NULL"]),
        ("SELECT request FROM trace_unified", ["parent_span_id IS NULL"]),
        ("SELECT trace_id FROM trace_unified WHERE forall(spans, s -> s.kind = 'x')", []),
        ("SELECT s.span_id FROM spans s LEFT JOIN traces t ON t.trace_id = s.trace_id "
         "AND s.attributes['gen_ai.tool.name'] IS NOT NULL", []),
        ("SELECT span_id FROM spans WHERE attributes['mlflow.spanType'] = 'TOOL' OR kind = 'x'",
         []),
    ],
)  # fmt: skip
def test_bounds_on_columns_that_are_not_in_the_schema(sql: str, bounds: list[str]) -> None:
    statement_check = pytest.importorskip("mltables.statement_check")
    found = statement_check.translate(sql).bounds["spans"]
    assert [
        f"{bound.column} {bound.operator} {''.join(bound.values)}".strip()
        for each in found
        for bound in each
    ] == bounds


def test_a_copy_leaves_out_files_only_by_what_its_reader_cannot_choose(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of other workspaces, and files without root spans for a statement about roots."""
    permitted = pytest.importorskip("mltables.permitted_rows")
    bounds = pytest.importorskip("mltables.file_pruning")
    statement_check = pytest.importorskip("mltables.statement_check")
    monkeypatch.setenv(storage.FOLDER, str(lakes["others"]))
    file = {"partition.request_date": None, "min.trace_id": "x", "max.trace_id": "x"}
    of_team = {"min.workspace_id": "team-a", "max.workspace_id": "team-a"}
    of_others = {"min.workspace_id": "team-b", "max.workspace_id": "team-b"}
    has_roots = {"null_count.parent_span_id": 2, "min.parent_span_id": "1"}
    no_roots = {"null_count.parent_span_id": 0, "min.parent_span_id": "1"}
    roots = (has_roots, no_roots)
    opened = []

    def files(*arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        admits = arguments[-1]
        assert callable(admits)
        opened.append(
            [admits(file | each | root) for each in (of_team, of_others) for root in roots]
        )
        return (), ()

    monkeypatch.setattr(permitted, "_files_with_columns", files)
    for sql in (
        "SELECT span_id FROM spans WHERE trace_id = 'needle'",
        "SELECT span_id FROM spans WHERE parent_span_id IS NULL AND trace_id = 'needle'",
    ):
        prepared = statement_check.translate(sql)
        wanted = bounds.evaluate_bounds(prepared.bounds, {})
        permitted.row_sources(prepared.reads, ["team-a", "team-c"], tmp_path, wanted)
    assert opened == [[True, True, False, False], [True, False, False, False]]
