"""The process that follows the stream: it ends with its runner, and does not stay away alone."""

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from local import shared_activity
from local.events.__main__ import BATCH_SIZE_FACTOR, follow
from local.events.checkpoints import Checkpoints
from local.events.stream_process_parameters import StreamJob
from local.shared_activity import SharedActivity
from local.template_definitions import FunctionDefinition, ScheduleDefinition, StreamMapping

from .conftest import TABLE, OpenTable, eventually
from .ended_process import gone
from .stream_mapping import mapping

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def follower(runner: Any) -> int:
    """The process that follows the stream for a runner; 0 where there is none."""
    for task in Path(f"/proc/{runner.process.pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for pid in task.read_text().split():
                if b"local.events" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
    return 0


def put(runner: Any, name: str) -> None:
    assert runner.request("PUT", f"/items/{name}", name, Content_Type="text/plain")[0] == 200


def copied(runner: Any, name: str) -> bool:
    return bool(runner.request("GET", f"/items/{name}?kind=COPY")[0] == 200)


def test_it_is_started_again_and_goes_on_where_it_was(local: Any, tmp_path: Path) -> None:
    runner = local(f"--data={tmp_path / 'data'}")
    put(runner, "a")
    eventually(lambda: copied(runner, "a"))
    first = follower(runner)
    os.kill(first, signal.SIGKILL)
    put(runner, "b")
    eventually(lambda: copied(runner, "b"))
    assert follower(runner) not in (0, first)
    eventually(lambda: "ended with code -9; it is started again" in runner.output)
    assert runner.end() == 0
    assert "Traceback" not in runner.output


def test_it_takes_no_signal_of_the_terminal_and_ends_with_its_runner(local: Any) -> None:
    runner = local("--ephemeral")
    put(runner, "a")
    eventually(lambda: copied(runner, "a"))
    pid = follower(runner)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    put(runner, "b")
    eventually(lambda: copied(runner, "b"))
    assert follower(runner) == pid
    assert runner.end() == 0
    assert gone(pid)


def test_it_ends_with_a_runner_that_was_killed(local: Any) -> None:
    runner = local("--ephemeral")
    pid = eventually(lambda: follower(runner))
    runner.end(signal.SIGKILL)
    eventually(lambda: gone(pid))


def test_without_the_indexer_there_is_none(local: Any) -> None:
    runner = local("--ephemeral", "--no-indexer")
    assert follower(runner) == 0


def test_a_job_is_told_in_one_line() -> None:
    function = FunctionDefinition("F", "indexer.app.handler", Path("/code"), 3.0, 128, {"A": "b"})
    job = StreamJob(
        *("arn", "us-east-1", "table", None, "/checkpoints", "/letters"),
        mappings=[mapping(patterns=("{}", "[]"))],
        functions=[function],
        schedules=[ScheduleDefinition("S", "F", 300.0, {"source": "schedule"})],
        shared_activity=3,
        end=7,
    )
    text = job.text()
    assert "\n" not in text
    assert StreamJob.of(text) == job
    assert isinstance(StreamJob.of(text).mappings[0], StreamMapping)


def test_another_process_knows_that_a_request_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_activity, "BUSY_SECONDS", 60.0)
    mine = SharedActivity()
    try:
        program = (
            "import sys; from local.shared_activity import SharedActivity; "
            "SharedActivity(int(sys.argv[1])).record_request()"
        )
        assert not mine.is_serving()
        subprocess.run(
            [sys.executable, "-c", program, str(mine.descriptor)],
            pass_fds=[mine.descriptor],
            cwd=Path(__file__).resolve().parents[2],
            check=True,
        )
        assert mine.is_serving()
        monkeypatch.setattr(shared_activity, "BUSY_SECONDS", 0.0)
        time.sleep(0.001)
        assert not mine.is_serving()
    finally:
        mine.close()


def test_whether_the_index_is_behind_is_what_was_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = SharedActivity()
    try:
        theirs = SharedActivity(mine.descriptor)
        assert not mine.is_index_lagging()
        theirs.set_index_lagging(True)
        assert mine.is_index_lagging()
        assert not mine.is_serving(), "one moment is not the other"
        theirs.set_index_lagging(False)
        assert not mine.is_index_lagging()
        theirs.set_index_lagging(True)
        # Who has told it may have died.
        monkeypatch.setattr(shared_activity, "LAG_REPORT_SECONDS", 0.0)
        time.sleep(0.001)
        assert not mine.is_index_lagging()
    finally:
        mine.close()


def test_more_of_the_own_stores_records_are_handed_over_at_once(
    opened: OpenTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting_batches.py").write_text(
        "counts = []\ndef handler(event, context):\n    counts.append(len(event['Records']))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for number in range(2 * BATCH_SIZE_FACTOR * 2 + 3):
        opened.put(f"{number}", type="run")
    shared = SharedActivity()
    job = StreamJob(
        *(opened.stream, "us-east-1", TABLE, str(opened.file.path)),
        checkpoints=str(opened.folder.checkpoints),
        dead_letters=str(opened.folder.dead_letters),
        mappings=[mapping(batch_size=2)],
        functions=[FunctionDefinition("F", "counting_batches.handler", tmp_path, 3.0, 128, {})],
        schedules=[],
        shared_activity=shared.descriptor,
        end=0,
    )
    with contextlib.closing(shared), contextlib.ExitStack() as stack:
        (poller,) = follow(stack, job, Checkpoints(opened.folder.checkpoints))
        eventually(lambda: poller.processed() == opened.file.last_record())
    counts = importlib.import_module("counting_batches").counts
    assert counts == [2 * BATCH_SIZE_FACTOR, 2 * BATCH_SIZE_FACTOR, 3]
