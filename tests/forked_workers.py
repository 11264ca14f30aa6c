"""Workers of pytest-xdist as forks of one process that has collected the tests: to import and to
collect takes each worker longer than many of them.

``python -m tests.forked_workers SOCKET`` is that process. It reads as JSON what its pytest gets,
collects, and forks for each program that connects to the socket and passes its standard streams:
``tests/forked_worker.py``, which xdist starts as a worker's interpreter. If the collection ends the
process, that program is the interpreter itself, whose pytest says why.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

import pytest
from _pytest import config as configuring
from _pytest import main as sessions
from _pytest import tmpdir

from tests.e2e.warm_client import only_python_at_exit

_ROOT: Final = Path(__file__).parents[1]
_PROGRAM: Final = Path(__file__).with_name("forked_worker.py")
_ARE_POSSIBLE: Final = sys.platform == "linux"
"""Elsewhere libraries of the system end a process that goes on after a fork."""
_SECONDS_TO_END: Final = 2.0


def fork_for(config: pytest.Config, specs: Sequence[Any]) -> None:
    """The workers that a controller is about to start by these specifications will be forks."""
    if not _ARE_POSSIBLE:
        return
    with contextlib.ExitStack() as stack:
        python = stack.enter_context(_interpreter(config))
        config.add_cleanup(stack.pop_all().close)
    for spec in specs:
        spec.python = python


@contextlib.contextmanager
def _interpreter(config: pytest.Config) -> Iterator[str]:
    """The command that starts the interpreter of a worker of this controller. The process that
    collects ends with the block."""
    arguments = [str(argument) for argument in config.invocation_params.args]
    task = {
        "arguments": arguments,
        "folder": str(config.invocation_params.dir),
        "path": _xdist("plugin")._sys_path,
    }
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        address = f"{folder}/workers"
        listening.bind(address)
        listening.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked_workers", str(listening.fileno())],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            text=True,
        )
        listening.close()  # who connects when that process has ended must learn it
        assert process.stdin is not None
        with process, contextlib.suppress(BrokenPipeError), process.stdin:
            print(json.dumps(task), file=process.stdin, flush=True)
            yield f"{sys.executable} -I -S {_PROGRAM} {address}"


def _xdist(module: str) -> Any:
    """pytest rewrites its assertions: only a configuration may import it first."""
    return importlib.import_module(f"xdist.{module}")


def main() -> None:
    controller = os.fdopen(os.dup(0))  # pytest puts something else in its place
    task = json.loads(controller.readline())
    sys.path[:] = task["path"]
    os.chdir(task["folder"])
    with socket.socket(fileno=int(sys.argv[1])) as listening, only_python_at_exit():
        config = configuring._prepareconfig(task["arguments"])
        _xdist("remote").setup_config(config, None)
        vars(config).update(workerinput={}, workeroutput={})
        collected = _Collected(listening, controller)
        config.pluginmanager.register(collected)
        sessions.wrap_session(config, collected.serve)
    os._exit(1)


class _Collected:
    """A plugin of pytest: what is known after the collection, with which workers go on."""

    def __init__(self, listening: socket.socket, controller: TextIO) -> None:
        self._listening = listening
        self._controller = controller
        self._reports: list[pytest.CollectReport] = []
        self._session: pytest.Session
        self._path: list[str]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._reports.append(report)

    def serve(self, config: pytest.Config, session: pytest.Session) -> NoReturn:
        """Forks for each worker until the controller has ended."""
        config.hook.pytest_collection(session=session)
        self._session = session
        self._path = sys.path
        workers = []
        awaited: list[Any] = [self._listening, self._controller]
        while self._controller not in select.select(awaited, [], [])[0]:
            connection, _ = self._listening.accept()
            streams = _received(connection)
            workers.append(os.fork())
            if not workers[-1]:
                connection.sendall(b"1")
                self._work(streams)
            # The worker's program ends when nobody has the connection: when the worker ends.
            connection.close()
            for stream in streams:
                os.close(stream)
        _end(workers)
        os._exit(0)

    def _work(self, streams: Sequence[int]) -> NoReturn:
        """Is a worker: executes what xdist sends to its interpreter."""
        self._listening.close()
        self._controller.close()
        config = self._session.config
        config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        vars(configuring)["_prepareconfig"] = self._prepared
        with open(0, closefd=False) as program:
            sources = program.readline()
        exec(eval(sources), {"__name__": "__main__"})
        vars(threading)["_shutdown"]()
        atexit._run_exitfuncs()
        os._exit(0)

    def _prepared(self, *_of_an_interpreter: Any) -> pytest.Config:
        """What xdist's worker takes for a new configuration."""
        sys.path = self._path
        config = self._session.config
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.start_global_capturing()
        capture.suspend_global_capture()
        return config

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> pytest.ExitCode:
        """Goes on behind the collection, as ``_pytest.main.wrap_session`` does."""
        tmpdir.pytest_configure(config)  # each worker has a folder of its own
        worker = next(
            plugin
            for plugin in config.pluginmanager.get_plugins()
            if type(plugin).__name__ == "WorkerInteractor"
        )
        session = self._session
        worker.pytest_sessionstart(session)
        for report in self._reports:
            worker.pytest_collectreport(report)
        worker.pytest_collection_finish(session)
        status = pytest.ExitCode.INTERNAL_ERROR
        try:
            config.hook.pytest_runtestloop(session=session)
            status = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK
        except (KeyboardInterrupt, pytest.exit.Exception):
            status = pytest.ExitCode.INTERRUPTED
        except BaseException:
            config.notify_exception(pytest.ExceptionInfo.from_current(), config.option)
        finally:
            os.chdir(session.startpath)
            config.hook.pytest_sessionfinish(session=session, exitstatus=status)
            config._ensure_unconfigure()
        return status


def _end(workers: Sequence[int]) -> None:
    """Waits for workers that xdist has told to end, so that their times count as those of this
    process. Kills those that do not end: xdist has killed their programs alone."""
    deadline = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        while os.waitpid(worker, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(worker, signal.SIGKILL)
            time.sleep(0.01)


def _received(connection: socket.socket) -> Sequence[int]:
    """The three standard streams that a program passes."""
    _, streams, *_ = socket.recv_fds(connection, 1, 3)
    return streams


if __name__ == "__main__":
    main()
