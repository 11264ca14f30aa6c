"""The database of a query is opened before its process is forked. It holds nothing of other
queries, and has the limits of a database that is opened anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mltables import query_memory
from sql import execution, query_server_client
from tests.contract import hidden_rows as hidden

lakes = hidden.lakes

_FORKS = """
import json, os, sys
from pathlib import Path
from mltables.duckdb_connection import connect, open_before_fork
from mltables.statement_execution import open_views

def in_fork(act):
    reading, writing = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writing, "w") as file:
            json.dump(act(), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.wait()
    return json.loads(text)

def settings(connection):
    return dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())

def objects(connection):
    kinds = ("schemas", "tables", "views", "functions", "variables", "prepared_statements")
    return {
        kind: connection.execute(f"SELECT count(*) FROM duckdb_{kind}()").fetchone()[0]
        for kind in kinds
    }

def spoil():
    connection = open_views([], {})
    connection.execute("CREATE TABLE secrets AS SELECT 'of another' AS text")
    connection.execute("CREATE TEMP TABLE more AS SELECT 'of another' AS text")
    connection.execute("CREATE MACRO spark_sum(x) AS 'of another'")
    connection.execute("CREATE SCHEMA others; SET VARIABLE secret = 'of another'")
    connection.execute("PREPARE stolen AS SELECT 'of another'")
    connection.execute("BEGIN TRANSACTION; CREATE TABLE uncommitted AS SELECT 1 AS one")
    return objects(connection)

def spoil_settings():
    connection = connect(Path(sys.argv[1]), "100MB")
    connection.execute("SET TimeZone = 'America/Lima'; SET threads = 1; SET search_path = 'temp'")
    connection.execute("SET GLOBAL default_order = 'desc'; SET ieee_floating_point_ops = true")
    return settings(connection)

def queried(act):
    return in_fork(lambda: act(open_views([], {})))

open_before_fork()
"""


def _run(code: str, folder: Path) -> Any:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "_RJEM_MALLOC_CONF": "background_thread:false",
    }
    printed = subprocess.run(
        [sys.executable, "-c", f"{_FORKS}\n{code}\nsys.stdout.flush(); os._exit(0)", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    return json.loads(printed.stdout)


def test_a_forked_database_has_the_settings_of_a_new_one(tmp_path: Path) -> None:
    forked, new = _run(
        "from mltables import duckdb_connection\n"
        "forked = queried(settings)\n"
        "duckdb_connection._databases_before_fork.clear()\n"
        "print(json.dumps([forked, queried(settings)]))",
        tmp_path,
    )
    assert forked == new
    assert forked["lock_configuration"] == "true"
    assert forked["enable_external_access"] == "false"
    assert forked["temp_directory"] == ""
    assert (forked["threads"], forked["TimeZone"]) == (str(query_memory.here().threads), "UTC")


def test_a_database_that_copies_rows_spills_where_it_is_told(tmp_path: Path) -> None:
    """And another one in the same process keeps that, because a folder in use cannot change."""
    code = (
        "def copies():\n"
        "    with connect(None) as first:\n"
        "        before = settings(first)['temp_directory']\n"
        "    with connect(Path(sys.argv[1]), '120MB') as second:\n"
        "        second.execute('CREATE TABLE t AS SELECT range AS n, md5(range::text) AS text '\n"
        "            'FROM range(4000000)')\n"
        "        spilled = len(list((Path(sys.argv[1]) / 'spill').iterdir()))\n"
        "        second.execute('DROP TABLE t')\n"
        "    with connect(None) as third:\n"
        "        answer = third.execute('SELECT 1').fetchall()\n"
        "    with connect(Path(sys.argv[1]), '120MB') as fourth:\n"
        "        return [before, spilled, answer, settings(fourth)['temp_directory']]\n"
        "print(json.dumps(in_fork(copies)))"
    )
    before, spilled, answer, last = _run(code, tmp_path)
    assert (before, answer, last) == ("", [[1]], str(tmp_path / "spill"))
    assert spilled


def test_each_copy_has_the_limits_of_a_query(tmp_path: Path) -> None:
    """Also after the column cache has connected with others."""
    code = (
        "from mltables import permitted_rows, query_memory\n"
        "from mltables.table_definitions import TRACES\n"
        "query_memory.here = lambda: query_memory.QueryLimits(1_500_000_000, 2**31, 6)\n"
        "source = permitted_rows.RowSource('traces', ('trace_id', 'experiment_id'), ())\n"
        "def copies():\n"
        "    folder = Path(sys.argv[1])\n"
        "    with permitted_rows._connected(folder) as copying:\n"
        "        with connect(None):\n"
        "            pass\n"
        "        target = f'{folder}/x.parquet'\n"
        "        permitted_rows._copy_rows(copying, source, TRACES.nothing, target)\n"
        "        return [settings(copying)[name] for name in ('memory_limit', 'threads')]\n"
        "print(json.dumps(in_fork(copies)))"
    )
    assert _run(code, tmp_path) == ["1.3 GiB", "6"]


def test_a_query_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    code = (
        "first = queried(objects)\n"
        "spoiled = in_fork(spoil)\n"
        "print(json.dumps([first, spoiled, queried(objects)]))"
    )
    first, spoiled, second = _run(code, tmp_path)
    assert second == first
    differing = {kind for kind in first if spoiled[kind] != first[kind]}
    assert differing == {*("schemas", "tables", "functions", "variables", "prepared_statements")}, (
        "the comparison would see them"
    )


def test_settings_of_a_query_end_with_it(tmp_path: Path) -> None:
    code = (
        "first = queried(settings)\n"
        "spoiled = in_fork(spoil_settings)\n"
        "print(json.dumps([first, spoiled, queried(settings)]))"
    )
    first, spoiled, second = _run(code, tmp_path)
    assert second == first
    assert spoiled["TimeZone"] != first["TimeZone"]
    assert spoiled["default_order"] != first["default_order"]


def test_the_process_that_forks_has_one_thread_and_no_file_of_a_query(tmp_path: Path) -> None:
    code = (
        "queried(objects)\n"
        "print(json.dumps([len(os.listdir('/proc/self/task')), os.listdir(sys.argv[1])]))"
    )
    assert _run(code, tmp_path) == [1, []]


@pytest.fixture
def process(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SYSTEM_TABLES_FOLDER", str(lakes["others"]))
    own = query_server_client.QueryProcess()
    monkeypatch.setattr(execution, "process", own)
    yield own
    own.stop()


def test_random_values_differ_between_queries(process: query_server_client.QueryProcess) -> None:
    """A copied generator would give every query the same ones."""
    answers = [
        tuple(execution.run_query({"sql": "SELECT uuid(), rand(), rand()"})["rows"][0])
        for _ in range(6)
    ]
    assert len({value for row in answers for value in row}) == 18


def test_a_process_that_was_started_early_answers_the_first_query(
    process: query_server_client.QueryProcess,
) -> None:
    execution.start_process()
    started = process.pid
    assert started
    execution.start_process()
    assert execution.run_query({"sql": "SELECT 1 AS one"})["rows"] == [[1]]
    assert process.pid == started


def test_a_process_that_cannot_be_started_early_is_started_by_the_first_query(
    process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(query_server_client, "_start_process", _refused)
        execution.start_process()
        with pytest.raises(execution.Busy):
            execution.run_query({"sql": "SELECT 1 AS one"})
    assert process.pid is None
    assert execution.run_query({"sql": "SELECT 1 AS one"})["rows"] == [[1]]


def _refused(_control: Any) -> Any:
    raise OSError("no process")
