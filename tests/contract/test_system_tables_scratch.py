"""The scratch folder of the system tables: each user's own, in parts that processes lock."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HOLDING = """
import sys
from pathlib import Path
from mltables.scratch_folder import LockedFolder, locate
part = LockedFolder(locate())
(part.temporary / "spill").write_text("much")
part.files.mkdir(exist_ok=True)
(part.files / "copy").touch()
print(part.temporary, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SYSTEM_TABLES_SCRATCH", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_is_removed_by_the_next(machine: Path) -> None:
    scratch = pytest.importorskip("mltables.scratch_folder")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        beside = scratch.LockedFolder(scratch.locate())
        assert beside.temporary != left, "it is at work"
        assert (left / "spill").exists()
        process.send_signal(signal.SIGKILL)
    after = scratch.LockedFolder(scratch.locate())
    assert after.temporary == left
    assert list(left.iterdir()) == []
    assert (after.files / "copy").exists()
    after.close()
    beside.close()


def test_it_belongs_to_one_user(machine: Path) -> None:
    scratch = pytest.importorskip("mltables.scratch_folder")
    folder = scratch.locate()
    assert folder == machine / f"system-tables-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rmdir()
    folder.symlink_to(machine)
    with pytest.raises(PermissionError, match="another user"):
        scratch.locate()
