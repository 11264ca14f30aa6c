"""``python -m mltables.query_server``: the warm process for SQL queries. It has loaded the engines
and opened an empty database, and runs no statement itself; for each query it forks processes, which
end with the query.

The process that started it sends one end of a new socket for each query, over the socket that is
this server's standard input. For each query the server forks a *supervisor*, which first writes
``+``, reads the request, and then forks

1. the process that prepares the rows that the caller may read
   (``statement_execution.prepare_rows``),
2. the process that runs the caller's statement on these rows only
   (``statement_execution.run_statement``).

The supervisor responds with a line of JSON that says how the last of these processes ended, and the
JSON that this process returned. Queries are isolated: their processes are forked from a process
that never held rows, and the folder of a query is removed when the query ends.

Requests are JSON: ``{"sql", "parameters", "casts", "workspaces", "audited", "format", "rows",
"bytes"}`` (``casts``: SQL types of parameters, by name; ``audited``: the workspaces of the table
``audit_log``, ``workspaces`` by default), the limits
``seconds`` and ``starting`` of the two processes, and ``environment``: all current environment
variables. A caller that keeps results adds ``kept``: the versions of the tables of the kept result,
or an empty text. The JSON line of the response has the versions of the new result; and the result
is ``{"unchanged": true}`` if they are those of the kept one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import tempfile
import traceback
import zoneinfo  # noqa: F401 -- for times in Delta's log; else each query would load it
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from mlcore.system_tables import storage
from mltables import query_memory, statement_check, statement_execution
from mltables.dialect import macros
from mltables.duckdb_connection import open_before_fork
from mltables.lake import Lake

NICE: Final = 10
IDLE_SECONDS: Final = 120.0
"""After this time without a query the process ends and frees its memory. The next query starts a
new process."""
FOLDERS: Final = "query"
"""``query-<process id of the server>-…`` is the folder of a query."""

MOST_BYTES: Final = 64 << 20
"""Most bytes of what a process of a query returns: a plan names the files that it prepared, and a
result is limited by ``statement_execution.BYTES``. A process that returns more is killed."""

_AGAIN: Final = f'{{"{statement_execution.RUN_AGAIN}"'.encode()

Json = dict[str, Any]


def main(idle_seconds: float = IDLE_SECONDS) -> NoReturn:
    """Serves SQL queries, and ends the process after ``idle_seconds`` without one."""
    _serve(idle_seconds)
    # A normal exit would make DuckDB's library report all frozen objects as leaks.
    os._exit(0)


def load_before_fork() -> None:
    """Loads into this process what the processes of queries, which it forks, would load each."""
    statement_check.translate("SELECT count(*) FROM system.mlflow.runs_latest WHERE run_id = :id")
    importlib.import_module("pytz")  # DuckDB returns times with it
    query_memory.here()  # the processes of queries have another environment
    macros.create_before_fork(open_before_fork())
    if not os.environ.get(storage.FOLDER):
        import botocore.session  # noqa: F401, PLC0415 -- else each query in AWS would load it


def _serve(idle_seconds: float) -> None:
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    control.settimeout(idle_seconds)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors leave no zombies
    load_before_fork()
    _sweep()
    # Forked processes share the memory that exists now, as long as nothing writes to it.
    gc.collect()
    gc.freeze()
    while True:
        try:
            message, ends, *_ = socket.recv_fds(control, 1, 1)
        except TimeoutError:
            return
        if not message:
            # The process that started this one has ended: no caller waits for running queries.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(0, signal.SIGTERM)
            _sweep()
            return
        for end in ends:
            if os.fork() == 0:
                control.close()
                _supervise(socket.socket(fileno=end))
            os.close(end)


def _sweep() -> None:
    """Removes the folders of killed queries of this server, and of servers that have ended."""
    for folder in Lake().scratch.glob(f"{FOLDERS}-*-*"):
        server = folder.name.split("-")[1]
        if server == str(os.getpid()) or not _is_alive(server):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


# ---------------------------------------------------------------- one query


def _supervise(conversation: socket.socket) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        conversation.sendall(b"+")
        with conversation.makefile("rb") as sent:
            request = json.load(sent)
        os.environ.clear()
        os.environ.update(request.pop("environment"))
        with _folder() as folder:
            ended, result = _processes(request, folder, conversation)
        conversation.sendall(json.dumps(ended).encode() + b"\n" + result)
    except BrokenPipeError:  # the caller has closed the connection
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=f"{FOLDERS}-{os.getppid()}-", dir=Lake().scratch))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _processes(request: Json, folder: Path, conversation: socket.socket) -> tuple[Json, bytes]:
    ended, result = _process(
        lambda: statement_execution.prepare_rows(request, folder), conversation
    )
    plan = json.loads(result) if result else {}
    if not result or "error" in plan or statement_execution.UNCHANGED in plan:
        return {**ended, "began": False}, result
    ended, result = _process(lambda: _confined(request, plan), conversation)
    if result.startswith(_AGAIN) and not request.get("whole"):
        # Column pruning or a rewritten lookup may have caused the error. Run the statement again
        # with all columns and the original lookups, so that the error is about what the caller
        # wrote.
        again = folder / "whole"
        again.mkdir()
        return _processes({**request, "whole": True}, again, conversation)
    return {**ended, "began": True, "versions": plan["versions"]}, result


def _confined(request: Json, plan: Json) -> Json:
    """Runs the statement in a process without environment variables, and so without credentials,
    and without standard error."""
    os.environ.clear()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    return statement_execution.run_statement(request, plan)


def _process(act: Callable[[], Json], conversation: socket.socket) -> tuple[Json, bytes]:
    """Runs ``act`` in a forked process. Returns how the process ended, and its result in JSON
    (nothing if it is longer than ``MOST_BYTES``)."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            conversation.close()
            result = json.dumps(act()).encode()
            with os.fdopen(writing, "wb") as file:
                file.write(result)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            # A normal exit of the interpreter would wait for the threads of libraries.
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        result = file.read(MOST_BYTES + 1)
    if len(result) > MOST_BYTES:
        os.kill(child, signal.SIGKILL)
        result = b""
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"signal": max(0, -code), "code": max(0, code), "memory": used.ru_maxrss}, result


if __name__ == "__main__":
    main()
