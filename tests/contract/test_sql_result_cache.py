"""A repeated query runs once while its tables stay the same, and always gives what it would give
without kept results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from mlcore import errors
from mlcore.repos.removal import permanent_deletion
from mltables import table_versions
from mltables.dialect import function_list, macros
from sql import execution, query_server_client
from sql.result_cache import ResultCache
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

RUNS = "SELECT count(*), max(status) FROM system.mlflow.runs_latest"
TRACES = "SELECT count(*) FROM system.mlflow.traces"
CHANGING = (
    *("rand() < 2", "random() < 2", "now() > '2020-01-01'", "current_date > '2020-01-01'"),
    *("current_date() > '2020-01-01'", "curdate() > '2020-01-01'", "unix_timestamp() > 1"),
    *(
        "length(uuid()) = 36",
        "current_timestamp > '2020-01-01'",
        "current_timestamp() > '2020-01-01'",
    ),
)


class _CountingProcess(query_server_client.QueryProcess):
    statements = 0

    def ask(self, request: dict[str, Any], seconds: float) -> query_server_client.Reply:
        reply = super().ask(request, seconds)
        self.statements += reply.statement_started
        return reply


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[_CountingProcess]:
    own = _CountingProcess()
    monkeypatch.setattr(execution, "process", own)
    monkeypatch.setattr(execution, "results", ResultCache())
    yield own
    own.stop()


def test_repeated_query_runs_again_only_after_a_change_of_its_tables(
    store: Store, tables: Tables, process: _CountingProcess
) -> None:
    def ran(sql: str, workspaces: list[str] | None = None, **parameters: Any) -> tuple[int, Any]:
        before = process.statements
        rows = tables.ask(sql, workspaces, **parameters)["rows"]
        return process.statements - before, rows

    assert ran(RUNS) == (1, [[0, None]])
    assert ran(RUNS) == (0, [[0, None]]), "also while the table does not exist"
    experiment = store.api.new_experiment("e")
    run = store.api.new_run(experiment)
    assert ran(RUNS) == (0, [[0, None]]), "nothing is published"
    tables.follow()
    assert ran(RUNS) == (1, [[1, "RUNNING"]])
    assert ran(TRACES) == (1, [[0]])
    store.api.post("runs/update", run_id=run, status="FINISHED", end_time=1)
    tables.follow()
    assert ran(TRACES) == (0, [[0]]), "only another table has changed"
    assert ran(RUNS) == (1, [[1, "FINISHED"]])
    tables.follow()
    assert ran(RUNS) == (0, [[1, "FINISHED"]]), "nothing was written"
    # Whatever belongs to the request makes another query.
    assert ran(RUNS + " WHERE run_id = :run", run=run) == (1, [[1, "FINISHED"]])
    assert ran(RUNS + " WHERE run_id = :run", run="none") == (1, [[0, None]])
    assert ran(RUNS + " WHERE run_id = :run", run=run) == (0, [[1, "FINISHED"]])
    # For a caller without all rights the time would show when other workspaces change.
    for _ in range(2):
        assert ran(RUNS, ["default"]) == (1, [[1, "FINISHED"]])
        assert ran(RUNS, []) == (1, [[0, None]])
    # A removed run disappears, also from a past version.
    past = RUNS + " VERSION AS OF 0"
    assert ran(past)[0] == 1
    shown = ran(past)
    assert shown[0] == 0
    store.api.post("experiments/delete", experiment_id=experiment)
    permanent_deletion.experiment(experiment)
    tables.follow()
    assert ran(RUNS) == (1, [[0, None]])
    assert ran(past) == (1, [[0, None]])
    # A refused or failed statement is refused or fails each time.
    for sql in ("SELECT CAST('x' AS INT)", "SELECT nothing FROM system.mlflow.runs_latest"):
        refusals = []
        for _ in range(2):
            with pytest.raises(errors.InvalidParameterValue) as refused:
                tables.ask(sql)
            refusals.append(refused.value.message)
        assert refusals[0] == refusals[1]


def test_changing_calls_are_computed_each_time(tables: Tables, process: _CountingProcess) -> None:
    columns = [f"({call})" for call in CHANGING]
    for count, column in enumerate(columns, 1):
        for _ in range(2):
            assert tables.ask(f"SELECT {column}")["rows"] == [[True]]
        assert process.statements == 2 * count, column


def test_all_functions_of_the_engine_that_change_are_known() -> None:
    """DuckDB tells which of its functions return something else each time."""
    with duckdb.connect() as connection:
        changing = {
            name
            for (name,) in connection.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions() "
                "WHERE stability <> 'CONSISTENT' AND function_name <> 'error'"
            ).fetchall()
        } | {"current_timestamp", "localtimestamp", "localtime", "current_time"}
    called = {"random()", "now()", "current_date"}  # what the generator writes itself
    called |= {simple.template or name for name, simple in function_list.SIMPLE.items()}
    depends = changing
    while True:  # macros that call such functions, or such macros
        more = {
            name
            for name, text in macros.DEFINITIONS.items()
            if depends.intersection(
                re.findall(r"\b(?:\w+(?=\()|current_\w+)", text.partition(" AS ")[2])
            )
        }
        if more <= depends:
            break
        depends = depends | more
    used = {
        name
        for text in (*called, *macros.DEFINITIONS)
        for name in re.findall(r"\w+", text)
        if name in depends
    }
    assert "random" in used
    assert "spark_now" in used
    assert used <= table_versions.CHANGING_CALLS
