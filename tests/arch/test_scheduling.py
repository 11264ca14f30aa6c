"""Groups of files that share a worker are those that share a server; and a worker that dies costs
the test that it ran."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import scheduling
from tests.engines import ROOT

FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))


def _takes(path: Path, *fixtures: str) -> bool:
    text = (ROOT / path).read_text()
    return any(f"{fixture}: " in text for fixture in fixtures)


@pytest.mark.parametrize(
    "start", [*scheduling.SHARING, *scheduling.PARSING, *scheduling.SAME_TABLES]
)
def test_each_group_has_files(start: str) -> None:
    assert any(path.as_posix().startswith(start) for path in FILES)


def test_what_compares_with_the_stock_server_shares_it() -> None:
    """But for the files that start a pair of servers of their own."""
    apart = {
        path.name
        for path in FILES
        if path.parent.name == "differential"
        and _takes(path, "stock_url")
        and scheduling.group_of(f"{path.as_posix()}::test") != "stock"
    }
    assert apart == set()


def test_waiting_and_computing_groups_alternate() -> None:
    """At each point of the order about the same share of both has begun; then come the others."""
    nodeids = [f"{path.as_posix()}::test" for path in FILES]
    order = scheduling.in_order(nodeids)
    assert sorted(order) == sorted(set(map(scheduling.group_of, nodeids)))
    assert order[0] == "browser"
    waiting, computing = (
        {scheduling.group_of(nodeid) for nodeid in nodeids if nodeid.startswith(starts)}
        for starts in (scheduling.WAITING, scheduling.COMPUTING)
    )
    begun = [0, 0]
    for group in order[: len(waiting) + len(computing)]:
        begun[group in computing] += 1
        assert abs(begun[0] / len(waiting) - begun[1] / len(computing)) < 0.02
    assert begun == [len(waiting), len(computing)]


class Worker:
    """What a scheduler sees of a worker."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.shutting_down = False
        self.is_dead = False
        self.sent: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


TESTS = [f"tests/test_{name}.py::test_{number}" for name in "abcd" for number in range(3)]


@pytest.fixture
def schedule() -> scheduling.GroupScheduling:
    option = SimpleNamespace(loadscopereorder=True, tx=["popen", "popen"], px=[])
    config = SimpleNamespace(option=option, getvalue=lambda name: getattr(option, name))
    return scheduling.GroupScheduling(config)


def _joined(schedule: scheduling.GroupScheduling, *, knows: bool = True) -> Worker:
    worker = Worker()
    schedule.add_node(worker)
    if knows:
        schedule.add_node_collection(worker, TESTS)
    return worker


def _run(schedule: scheduling.GroupScheduling, worker: Worker, done: list[str]) -> None:
    """A worker runs a test when it knows of a next one, or that there is none."""
    while len(worker.sent) > (not worker.shutting_down):
        done.append(TESTS[worker.sent[0]])
        schedule.mark_test_complete(worker, worker.sent.pop(0))


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("is_noticed_late", [False, True])
def test_a_worker_that_dies_costs_the_test_that_it_ran(
    schedule: scheduling.GroupScheduling, at: int, is_noticed_late: bool
) -> None:
    """It may be dead when the report of its last test is read."""
    first, second = _joined(schedule), _joined(schedule)
    schedule.schedule()
    done: list[str] = []
    for number in range(at):
        first.is_dead = is_noticed_late and number == at - 1
        done.append(TESTS[first.sent[0]])
        schedule.mark_test_complete(first, first.sent.pop(0))
    running = TESTS[first.sent[0]]
    assert schedule.remove_node(first) == running
    replacement = _joined(schedule, knows=False)
    _run(schedule, second, done)  # while the replacement still looks for its tests
    schedule.add_node_collection(replacement, TESTS)
    schedule.schedule()
    for worker in itertools.islice(itertools.cycle((replacement, second)), 8):
        _run(schedule, worker, done)
    assert sorted([*done, running]) == sorted(TESTS)
    assert schedule.tests_finished


def test_a_worker_that_dies_before_all_know_their_tests(
    schedule: scheduling.GroupScheduling,
) -> None:
    first, second = _joined(schedule), _joined(schedule, knows=False)
    assert schedule.remove_node(first) is None
    replacement = _joined(schedule, knows=False)
    schedule.add_node_collection(second, TESTS)
    assert not schedule.collection_is_completed
    schedule.add_node_collection(replacement, TESTS)
    schedule.schedule()
    assert second.sent
    assert replacement.sent


def test_a_replacement_that_finds_other_tests_goes(schedule: scheduling.GroupScheduling) -> None:
    first, _second = _joined(schedule), _joined(schedule)
    schedule.schedule()
    schedule.remove_node(first)
    replacement = _joined(schedule, knows=False)
    schedule.add_node_collection(replacement, TESTS[1:])
    schedule.schedule()
    assert replacement.shutting_down
    assert replacement.sent == []


def test_workers_that_die_cost_no_more_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests import scheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return scheduling.GroupScheduling(config, log)\n"
    )
    dies = (
        "import os\ndef test_before(): pass\ndef test_dies(): os._exit(7)\ndef test_after(): pass\n"
    )
    (tmp_path / "test_a.py").write_text(dies)
    (tmp_path / "test_b.py").write_text("".join(f"def test_{n}(): pass\n" for n in range(4)))
    (tmp_path / "test_c.py").write_text(dies)
    ran = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:hypothesispytest",
            ),
            *("-q", "-n", "2", "--rootdir", str(tmp_path), str(tmp_path)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert re.search(r"2 failed, 8 passed", ran.stdout), ran.stdout + ran.stderr
