"""Reads CPU time and memory of a process and its descendants, as Linux reports them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

TICKS: Final = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """The CPU seconds of a process, and its megabytes: its own and its share of shared memory."""

    name: str
    seconds: float
    megabytes: float


def processes(leader: int) -> list[Process]:
    """Returns a process and its descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(
                int(stat.parent.name)
            )
    group, waiting = [], [leader]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, ())
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            memory = Path(f"/proc/{pid}/smaps_rollup").read_text()
            size = next(line for line in memory.splitlines() if line.startswith("Pss:")).split()[1]
            name = next(
                (part for part in command if part.startswith(("local", "mltables."))),
                Path(command[0]).name,
            )
            group.append(Process(name, sum(map(int, times)) / TICKS, int(size) / 1024))
    return group


def shown(measured: Sequence[Process], field: str) -> str:
    """Returns one figure of each process and their sum, as text."""
    each = [(process.name, getattr(process, field)) for process in measured]
    total = sum(value for _, value in each)
    return ", ".join(f"{name} {value:.1f}" for name, value in each) + f"; in all {total:.1f}"


def megabytes(leader: int) -> float:
    """Returns the megabytes of memory of a process and its descendants together."""
    return sum(process.megabytes for process in processes(leader))
