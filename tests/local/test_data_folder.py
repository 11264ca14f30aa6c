"""Who holds the lock of a data folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.data_folder import DataFolder, FolderInUse


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    """The locked file, which names a process that has ended: a runner that was killed."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.pwrite(descriptor, f"{ended.pid}\n".encode(), 0)
    yield descriptor
    os.close(descriptor)


def test_the_holder_before_the_present_one_is_not_named(tmp_path: Path, lock: int) -> None:
    """The present one has the lock a moment before it writes its number."""
    own = f"{os.getpid()}\n".encode()
    threading.Timer(0.2, os.pwrite, (lock, own, 0)).start()
    with pytest.raises(FolderInUse, match=rf"\(process {os.getpid()}\)"):
        DataFolder(tmp_path)


def test_a_holder_that_writes_no_number(tmp_path: Path, lock: int) -> None:
    with pytest.raises(FolderInUse, match=r"\(process unknown\)"):
        DataFolder(tmp_path)
