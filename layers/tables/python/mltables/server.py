"""``python -m mltables.server``: the warm process of the queries. It has the engines loaded, runs
no statement itself, and starts processes for each query, which end with it.

Whoever started it sends it, over the socket that is its standard input, one end of a new socket for
each query. A *supervisor* is forked for the query, which says ``+`` at once, reads the request, and
forks

1. the process that chooses the rows that the caller may read (``query.prepared``),
2. the process that runs the caller's statement on them and nothing else (``query.answered``).

It answers with a line of JSON that tells how the last of them ended, and the JSON of that process.
Nothing of a query can reach another one: processes are forked from one that never saw
rows, and the folder of a query is removed when it is over.

Requests are JSON: ``{"sql", "parameters", "workspaces", "format", "rows", "bytes"}``, the limits
``seconds`` and ``starting`` of the two processes, and ``environment``: all variables of now.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from mlcore.system_tables import location
from mltables import gate, query
from mltables.lake import Lake

NICE: Final = 10
IDLE_SECONDS: Final = 120.0
"""After so long without a query the process ends, and its memory is free; a next query starts
another one."""
FOLDERS: Final = "query"
"""``query-<process id of the server>-…`` is the folder of a query."""

_MISSING: Final = f'{{"{query.MISSING}"'.encode()

Json = dict[str, Any]


def main() -> None:
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    control.settimeout(IDLE_SECONDS)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors leave no zombies
    gate.prepare("SELECT count(*) FROM system.mlflow.runs_latest WHERE run_id = :id")
    if not os.environ.get(location.FOLDER):
        import botocore.session  # noqa: F401, PLC0415 -- what each query in AWS would load

    _sweep()
    # What exists now is shared with each query's processes as long as nobody writes to it.
    gc.collect()
    gc.freeze()
    while True:
        try:
            said, ends, *_ = socket.recv_fds(control, 1, 1)
        except TimeoutError:
            return
        if not said:
            # Who asked is gone, and nobody waits for what still runs.
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
    """Removes the folders of queries that were killed, of this process and of those that are
    gone."""
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
            ended, said = _processes(request, folder, conversation)
        conversation.sendall(json.dumps(ended).encode() + b"\n" + said)
    except BrokenPipeError:  # nobody waits any more
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
    ended, said = _process(lambda: query.prepared(request, folder), conversation)
    told = json.loads(said) if said else {}
    if not said or "error" in told:
        return {**ended, "began": False}, said
    ended, said = _process(lambda: _confined(request, told), conversation)
    if said.startswith(_MISSING) and not request.get("whole"):
        # Columns that the statement does not name were left out: which it may mean is only told
        # with all of them.
        again = folder / "whole"
        again.mkdir()
        return _processes({**request, "whole": True}, again, conversation)
    return {**ended, "began": True}, said


def _confined(request: Json, told: Json) -> Json:
    """Runs the statement; what started this process, and by which credentials, is forgotten."""
    os.environ.clear()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    return query.answered(request, told)


def _process(act: Callable[[], Json], conversation: socket.socket) -> tuple[Json, bytes]:
    """What a process of its own says, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            conversation.close()
            said = json.dumps(act()).encode()
            with os.fdopen(writing, "wb") as file:
                file.write(said)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            # Not by the way of an interpreter that waits for the threads of its libraries.
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"signal": max(0, -code), "code": max(0, code), "memory": used.ru_maxrss}, said


if __name__ == "__main__":
    main()
