"""Finds and kills processes that the packages of a scorer start while they are imported. The filter
of system calls applies to the process that installs it, but not to processes that it has started
before. So a process with children does not install the filter and runs no scorer, and its children
are killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from mlcore.scorer_cage.syscalls import NoCage, control

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ALL_CHILDREN: Final = os.WNOHANG | 0x40000000  # __WALL: also those that are no forks
_ENDED_SECONDS: Final = 0.05
"""The kernel may list a thread for at most this time after it was joined."""
_POLL_SECONDS: Final = 0.002
_KILL_ROUNDS: Final = 100
"""Attempts to kill all processes; some, such as those of another user, cannot be killed."""
_ROUND_SECONDS: Final = 0.01


def adopt() -> None:
    """Makes this process the parent also of those descendants whose own parent has ended (daemons).
    Raises NoCage if the kernel refuses."""
    control(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Lets the kernel kill this process when its parent ends. A change of user or of the user
    namespace undoes this setting. Raises NoCage if the kernel refuses it."""
    control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def check_alone() -> None:
    """Checks that this process has no other thread and no child process; else raises NoCage."""
    until = time.monotonic() + _ENDED_SECONDS
    while (
        threads := len(list(Path("/proc/self/task").iterdir())) - 1
    ) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    if threads:
        raise NoCage(
            f"the packages that it imports have started {threads} threads, which cannot be locked "
            "up"
        )
    if _has_children():
        number = len(descendants(os.getpid()))
        raise NoCage(
            f"the packages that it imports have started {number} processes, which cannot be locked "
            "up"
        )


def kill_all() -> None:
    """Kills all processes that this one has started. Gives up after a second if some cannot be
    killed."""
    for _ in range(_KILL_ROUNDS):
        if not _has_children():
            return
        kill(descendants(os.getpid()))
        time.sleep(_ROUND_SECONDS)


def kill(processes: list[int]) -> None:
    """Tries to kill processes."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Returns the ids of the children of a process, of their children, and so on."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                # The name of the program, in parentheses, may contain anything.
                status = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(status[1]), []).append(int(folder.name))
    ids = list(children.get(process, ()))
    for each in ids:
        ids += children.get(each, ())
    return ids


def _has_children() -> bool:
    """Returns whether a child of this process still runs. Reaps children that have ended."""
    while True:
        try:
            ended, _ = os.waitpid(-1, _ALL_CHILDREN)
        except ChildProcessError:
            return False
        if not ended:
            return True
