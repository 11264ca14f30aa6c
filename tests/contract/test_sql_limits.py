"""Memory and threads of a query are a part of what its place has, and the limits are kept."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from sql import execution, query_server_client
from tests.contract import hidden_rows as hidden

lakes = hidden.lakes
limits = pytest.importorskip("mltables.query_memory")

GIB = 1 << 30


def test_a_function_of_the_template_has_the_limits_that_it_had() -> None:
    assert limits.of_function(1769, 2) == (450_000_000, 800 << 20, 2)
    assert limits.of_function(1769, 8) == limits.DEPLOYED, "more processors need more memory"
    assert limits.DEPLOYED.text == "450 MB"


def test_limits_grow_with_the_place_and_leave_room_for_others() -> None:
    rng = random.Random(1)
    for _ in range(300):
        processors = rng.randrange(1, 65)
        size, more = sorted(rng.sample(range(128, 10_241), 2))
        function, larger = (limits.of_function(mb, processors) for mb in (size, more))
        assert larger >= function
        # The function's own process and the warm one take some 250 MB.
        assert size < 1769 or function.address_space + (250 << 20) < size << 20
        memory = rng.randrange(GIB // 2, 256 * GIB)
        machine = limits.of_machine(memory, processors)
        assert limits.of_machine(memory + GIB, processors) >= machine
        assert limits.DEPLOYED.memory <= machine.memory <= 2_000_000_000
        together = execution.CONCURRENT_QUERIES * machine.address_space
        assert memory < 4 * GIB or together < memory * 3 / 4
        for each in (function, machine):
            assert 2 <= each.threads <= max(2, min(8, processors))
            assert each.memory < each.address_space < 2 * each.memory
    assert limits.of_machine(16 * GIB, 8) == limits.of_machine(64 * GIB, 12)
    assert limits.of_machine(16 * GIB, 8).threads == 8


@pytest.mark.parametrize(
    ("groups", "files", "memory", "processors"),
    [
        ("0::/", {"memory.max": "3000000000", "cpu.max": "150000 100000"}, 3_000_000_000, 2),
        ("0::/", {"memory.max": "max", "cpu.max": "max 100000"}, None, None),
        ("0::/", {"cpu.max": "10000 100000"}, None, 1),
        (
            "0::/a/b",
            {"a/memory.max": "700000000", "a/b/memory.max": "900000000", "a/b/cpu.max": "max"},
            700_000_000,
            None,
        ),
        (
            "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/",
            {"memory/docker/1/memory.limit_in_bytes": "800000000"},
            800_000_000,
            None,
        ),
        # The container does not see the path that the file names.
        ("4:memory:/docker/1", {"memory/memory.limit_in_bytes": "900000000"}, 900_000_000, None),
        ("4:memory:/docker/1", {"memory/memory.limit_in_bytes": "9" * 19}, None, None),
        ("0::/../..", {"memory.max": "600000000"}, 600_000_000, None),
    ],
)
def test_the_limits_of_a_container_are_those_of_the_machine(
    tmp_path: Path, groups: str, files: dict[str, str], memory: int | None, processors: int | None
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{groups}\n")
    for name, text in files.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    nothing = tmp_path / "nothing"
    assert limits._memory_bytes(tmp_path) == (memory or limits._memory_bytes(nothing))
    own = limits._processors(nothing)
    assert limits._processors(tmp_path) == (min(own, processors) if processors else own)


@pytest.fixture
def process(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[query_server_client.QueryProcess]:
    monkeypatch.setenv("SYSTEM_TABLES_FOLDER", str(lakes["others"]))
    monkeypatch.setenv("SYSTEM_TABLES_SECONDS", "30")
    own = query_server_client.QueryProcess()
    monkeypatch.setattr(execution, "process", own)
    yield own
    own.stop()


@pytest.mark.parametrize("megabytes", [1024, 1536])
def test_a_statement_gets_the_memory_that_its_function_has_for_it(
    process: query_server_client.QueryProcess, monkeypatch: pytest.MonkeyPatch, megabytes: int
) -> None:
    """No less, and no more; the error says how much."""
    monkeypatch.setenv(limits.FUNCTION_MEMORY, str(megabytes))
    most = limits.of_function(megabytes, 2)
    rows = most.memory // 350
    assert _kept(rows // 4) == [[rows // 4]]
    with pytest.raises(errors.InvalidParameterValue, match=f"more than the {most.text} of memory"):
        _kept(rows * 2)
    assert execution.run_query({"sql": "SELECT 1 AS one"})["rows"] == [[1]]


def _kept(rows: int) -> Any:
    """A query that keeps a text of 320 bytes for each row."""
    numbers = f"SELECT explode(sequence(1, {rows})) AS n"
    sql = f"SELECT size(collect_list(repeat(md5(string(n)), 10))) FROM ({numbers})"
    return execution.run_query({"sql": sql})["rows"]
