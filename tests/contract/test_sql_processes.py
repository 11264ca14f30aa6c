"""The processes of queries: warm, few at a time, and each with the rows of its own query alone."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from mlcore.policies.access import Access
from sql import app, execution, messages, query_server_client, service
from tests.contract import hidden_rows as hidden

lakes = hidden.lakes

ENDLESS = (
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) "
    "SELECT count(*) + (SELECT count(*) FROM system.mlflow.runs_latest) FROM x"
)


@pytest.fixture
def lake(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYSTEM_TABLES_FOLDER", str(lakes["others"]))
    return lakes["others"]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[query_server_client.QueryProcess]:
    own = query_server_client.QueryProcess()
    monkeypatch.setattr(execution, "process", own)
    yield own
    own.stop()


def _ask(sql: str = "SELECT 1 AS one", workspaces: list[str] | None = None) -> Any:
    return execution.run_query({"sql": sql, "workspaces": workspaces})["rows"]


def _status(pid: int, name: str) -> str:
    match = re.search(rf"^{name}:\s+(.*)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match
    return match[1]


def _below(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    results = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            results += [child, *_below(child)]
    return results


def _waited(act: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            if result := act():
                return result
        except (FileNotFoundError, ProcessLookupError):
            pass
        assert time.monotonic() < end
        time.sleep(0.01)


def _beside(act: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Does something in a thread; what it answers, or raises, is in the list then."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(act())
        except errors.MlflowError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_a_reply_that_takes_too_long_is_not_waited_for_twice(
    lake: Path, process: query_server_client.QueryProcess
) -> None:
    """If the process does not enforce the limits of a query itself."""
    first = _ask()
    limits = {"seconds": 60.0, "starting": 60.0, "environment": dict(os.environ)}
    with pytest.raises(TimeoutError):
        process.ask({"sql": ENDLESS, "workspaces": None, **limits}, 0.5)
    assert _ask() == first


@pytest.mark.parametrize("idle_seconds", [0.2, 60.0])
def test_the_process_ends_without_a_word(lake: Path, idle_seconds: float) -> None:
    """If no query came for a while, and if the process that started it has ended."""
    code = f"from mltables import query_server; query_server.main({idle_seconds})"
    control, other = socket.socketpair()
    with other:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=other.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
    if idle_seconds > 1:
        control.close()
    printed, _ = process.communicate(timeout=60)
    control.close()
    assert (process.returncode, printed) == (0, b"")


def test_queries_share_a_process_that_is_nice_and_runs_none(
    lake: Path, process: query_server_client.QueryProcess
) -> None:
    assert _ask() == [[1]]
    first = process.pid
    assert first
    for _ in range(3):
        assert _ask("SELECT count(*) > 0 FROM system.mlflow.runs_latest") == [[True]]
        with pytest.raises(errors.InvalidParameterValue):
            _ask("SELECT CAST('x' AS INT)")
    assert process.pid == first
    assert os.getpriority(os.PRIO_PROCESS, first) >= 10
    assert _status(first, "Threads") == "1", "one with threads could not be forked safely"
    # Neither rows nor files of a query are left in it.
    assert not _holds(first, f"{hidden.SECRET}[")
    assert not [file for file in _files(first) if "parquet" in file]
    _waited(lambda: not _below(first))  # a query answers a moment before its process ends


def _files(pid: int) -> list[str]:
    return [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]


def _holds(pid: int, text: str) -> bool:
    """Whether the memory of a process does that may be written."""
    regions = re.findall(r"^(\w+)-(\w+) rw", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for first, last in regions:
            memory.seek(int(first, 16))
            try:
                if text.encode() in memory.read(int(last, 16) - int(first, 16)):
                    return True
            except OSError:  # what the kernel keeps there for itself
                continue
    return False


@pytest.mark.parametrize("workspaces", [list(hidden.READABLE), None])
def test_the_process_of_a_statement_holds_no_row_that_its_caller_may_not_read(
    lake: Path,
    process: query_server_client.QueryProcess,
    workspaces: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In all its memory; and that would be seen, as it is where the caller may read all."""
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "60")
    sql = (
        "WITH n AS (SELECT explode(sequence(1, 1000000)) AS n) SELECT count(*) "
        "FROM system.mlflow.runs_latest r, n a, n b "
        "WHERE md5(concat(r.run_name, r.params['p'], string(a.n))) < md5(string(b.n))"
    )
    _ask()
    thread, results = _beside(lambda: _ask(sql, workspaces))
    (running,) = _waited(lambda: _running(process.pid or 0))
    if workspaces is None:
        _waited(lambda: _holds(running, f"{hidden.SECRET}["), 50)
    else:
        _waited(lambda: _holds(running, hidden.OWN), 50)
        for _ in range(3):
            assert not _holds(running, f"{hidden.SECRET}[")
            time.sleep(0.5)
    os.kill(running, signal.SIGKILL)
    thread.join()
    assert isinstance(results[0], errors.InvalidParameterValue)
    # What that process died of is no matter to others, and its files are gone.
    assert _ask() == [[1]]
    assert not list(Path(os.environ["SYSTEM_TABLES_SCRATCH"]).glob("query-*"))


def _running(server: int) -> list[int]:
    """The processes whose memory has an end for good, as that of statements alone has."""
    return [
        pid
        for pid in _below(server)
        if not re.search(
            r"Max address space .* unlimited ", Path(f"/proc/{pid}/limits").read_text()
        )
    ]


def test_callers_one_after_another_read_their_own(
    lake: Path, process: query_server_client.QueryProcess
) -> None:
    """Beside each other, too."""
    sql = (
        "SELECT count(*), count(DISTINCT workspace_id), max(workspace_id) "
        "FROM system.mlflow.runs_latest"
    )
    alone = {workspace: _ask(sql, [workspace]) for workspace in hidden.WORKSPACES}
    assert all(rows[0][1:] == [1, key] for key, rows in alone.items())
    for _ in range(3):
        workspaces = [
            (workspace, *_beside(lambda name=workspace: _ask(sql, [name])))  # type: ignore[misc]
            for workspace in hidden.WORKSPACES
        ]
        for workspace, thread, results in workspaces:
            thread.join()
            assert results == [alone[workspace]]


@pytest.mark.parametrize("stopped_by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_is_gone_or_stuck_is_replaced(
    lake: Path,
    process: query_server_client.QueryProcess,
    stopped_by: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _ask()
    first = process.pid
    assert first
    os.kill(first, stopped_by)
    if stopped_by is signal.SIGSTOP:
        control = process._control
        assert control
        control.settimeout(1)
        monkeypatch.setattr(query_server_client, "START_SECONDS", 5)
    assert _ask() == [[1]]
    assert process.pid != first
    assert not Path(f"/proc/{first}").exists()


def test_a_process_ends_when_nobody_is_left_who_could_ask(
    lake: Path, process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it had begun ends with it."""
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "15")
    _ask()
    server, control = process.pid, process._control
    assert server
    assert control
    thread, results = _beside(lambda: _ask(ENDLESS, ["team-a"]))
    (running,) = _waited(lambda: _running(server))
    control.shutdown(2)
    _waited(lambda: not Path(f"/proc/{running}").exists() or _status(running, "State")[0] == "Z")
    thread.join()
    assert isinstance(results[0], errors.InvalidParameterValue)
    _waited(lambda: not list(Path(os.environ["SYSTEM_TABLES_SCRATCH"]).glob("query-*")))
    assert _ask() == [[1]]


def test_three_run_at_a_time_and_others_come_again(
    lake: Path, process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the others is told at once, and when."""
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "6")
    path = "/api/3.0/mlflow-serverless/sql"
    event = {
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": "POST", "path": path}},
        "isBase64Encoded": False,
    }

    def called(sql: str) -> dict[str, Any]:
        return app.handler({**event, "body": json.dumps({"sql": sql})}, None)

    _ask()
    server = process.pid or 0
    begun = [_beside(lambda: called(ENDLESS)) for _ in range(execution.CONCURRENT_QUERIES)]
    _waited(lambda: len(_running(server)) == execution.CONCURRENT_QUERIES)
    began = time.monotonic()
    refused = [called(ENDLESS) for _ in range(21)]
    assert time.monotonic() - began < 2, "no worker waits"
    assert {answer["statusCode"] for answer in refused} == {429}
    assert {answer["headers"]["retry-after"] for answer in refused} == {"1"}
    assert json.loads(refused[0]["body"])["error_code"] == "REQUEST_LIMIT_EXCEEDED"
    for thread, results in begun:
        thread.join()
        assert results[0]["statusCode"] == 400
    assert called("SELECT 1")["statusCode"] == 200
    _waited(lambda: not _below(server))


def test_what_cannot_be_read_is_nobodys_mistake_but_ours(
    lake: Path,
    process: query_server_client.QueryProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = tmp_path / "files/system/mlflow/runs_latest/_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("no log")
    monkeypatch.setenv("SYSTEM_TABLES_FOLDER", str(tmp_path))
    with pytest.raises(errors.InternalError):
        _ask("SELECT count(*) FROM system.mlflow.runs_latest")
    assert _ask() == [[1]]


def test_variables_are_those_of_the_moment(
    lake: Path, process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials change, and a variable that is gone is gone."""
    sql = "SELECT count(*) > 0 FROM system.mlflow.runs_latest"
    assert _ask(sql) == [[True]]
    monkeypatch.delenv("SYSTEM_TABLES_FOLDER")
    with pytest.raises(errors.InternalError):
        _ask(sql)


def test_a_reader_is_granted_workspaces_by_name(
    lake: Path, process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the route on."""
    monkeypatch.setattr(service, "readable_workspaces", lambda access: ["team-a"])
    monkeypatch.setattr(service, "audited_workspaces", lambda access: [])
    request = type("Asked", (), {"access": Access, "headers": {}})
    message = messages.Query()
    message.sql = "SELECT DISTINCT workspace_id FROM system.mlflow.runs_latest"
    answer = service.query(message, request)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    assert answer["rows"] == [["team-a"]]
