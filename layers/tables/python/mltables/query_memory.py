"""How much memory and how many threads an SQL query of the system tables may use: a part of those
of the Lambda function, or else of the machine.

A Lambda function answers one request at a time, so a query gets what the function leaves. On a
machine, three queries may run beside everything else, and each gets a part of it. A container's
limits count as the machine's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FUNCTION_MEMORY: Final = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
"""Environment: the memory of a Lambda function in MB. Lambda sets it."""

_MOST_THREADS: Final = 8
_MEGABYTE: Final = 1_000_000
_PER_THREAD: Final = 225 * _MEGABYTE
"""Bytes of memory for each thread: each has its own groups, sorted rows and pages of columns."""


class QueryLimits(NamedTuple):
    """The memory and the number of threads that one SQL query may use."""

    memory: int
    """Bytes that the engine may allocate."""
    address_space: int
    """Bytes of address space that the process of a statement may add to those that it has at its
    start. The kernel enforces this limit. It is larger than ``memory``, because the engine does not
    count everything, and stacks and gaps take address space, too."""
    threads: int

    @property
    def text(self) -> str:
        """Returns the memory that an SQL query may use as text (``450 MB``), for DuckDB and error
        messages."""
        return f"{self.memory // _MEGABYTE} MB"


DEPLOYED: Final = QueryLimits(450 * _MEGABYTE, 800 << 20, 2)
"""The limits in a function with the memory of the template (``DEPLOYED_MB``). A machine never has
less."""
DEPLOYED_MB: Final = 1769
TRANSLATING: Final = 300 << 20
"""Bytes of address space that the translation of a statement may take. The longest statement that
is accepted takes some 40 MB."""
_MOST_ON_MACHINE: Final = 2_000 * _MEGABYTE


@functools.cache
def here() -> QueryLimits:
    """Returns the memory and threads for an SQL query in this Lambda function or machine."""
    processors = _processors()
    if function := os.environ.get(FUNCTION_MEMORY):
        return of_function(int(function), processors)
    return of_machine(_memory_bytes(), processors)


def of_function(megabytes: int, processors: int) -> QueryLimits:
    """Returns the limits of an SQL query in a Lambda function with ``megabytes`` of memory. Up to
    ``DEPLOYED_MB``, the query's memory is ``DEPLOYED.memory``, reduced in proportion; above that,
    half of the further megabytes are added to it."""
    if megabytes <= DEPLOYED_MB:
        return _limits(DEPLOYED.memory * megabytes // DEPLOYED_MB, processors)
    return _limits(DEPLOYED.memory + (megabytes - DEPLOYED_MB) * _MEGABYTE // 2, processors)


def of_machine(memory: int, processors: int) -> QueryLimits:
    """Returns the limits of one query on a machine with ``memory`` bytes and ``processors``: an
    eighth of the memory, but at least that of ``DEPLOYED`` and at most 2 GB; threads that fit."""
    return _limits(min(max(memory // 8, DEPLOYED.memory), _MOST_ON_MACHINE), processors)


def _limits(memory: int, processors: int) -> QueryLimits:
    threads = max(DEPLOYED.threads, min(processors, _MOST_THREADS, memory // _PER_THREAD))
    return QueryLimits(memory, DEPLOYED.address_space * memory // DEPLOYED.memory, threads)


def address_space() -> int | None:
    """Returns the size of this process's address space in bytes; None where it is unknown (not
    Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return None
    return pages * resource.getpagesize()


@contextlib.contextmanager
def limited_address_space(more: int) -> Iterator[None]:
    """Context manager: this process may add at most ``more`` bytes to its address space; what needs
    more raises MemoryError. Does nothing where the size of a process is unknown (not Linux)."""
    size = address_space()
    if size is None:
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = size + more
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


# --------------------------------------------------------------- the machine


def _memory_bytes(root: Path = Path("/")) -> int:
    """Returns the memory of the machine, or of the container if that has less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        int(text)
        for name in ("memory.max", "memory.limit_in_bytes")
        for text in _control_groups(root, "memory", name)
        if text.isdecimal()
    ]
    return min([physical, *limits])


def _processors(root: Path = Path("/")) -> int:
    """Returns the number of processors that this process may use, rounded up."""
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    else:  # macOS
        processors = os.cpu_count() or 1
    for text in _control_groups(root, "cpu", "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            processors = min(processors, -(-int(quota) // int(period)))
    return max(1, processors)


def _control_groups(root: Path, controller: str, name: str) -> Iterator[str]:
    """Yields the content of a file in each of Linux's control groups that this process is in, from
    the innermost to the root: of the unified hierarchy, or of a controller's own (version 1). A
    container sees its own group as the root.

    Args:
        root: the folder with ``proc`` and ``sys``.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    groups = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = groups / controller if controllers else groups
        folder = top / path.lstrip("/")
        for group in (folder, *folder.parents):
            if not group.is_relative_to(top):
                break
            try:
                yield (group / name).read_text(encoding="ascii").strip()
            except OSError:  # not in this group
                continue
