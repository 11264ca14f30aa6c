"""The administrator for whom imports run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.engines import ROOT
from tests.servers import (
    environment,
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "local.admin", *arguments]


def clean() -> dict[str, str]:
    dropped = ("AWS_", "TABLE_NAME", "ARTIFACT_")
    return {name: text for name, text in environment().items() if not name.startswith(dropped)}


def admin(*arguments: str, expected: int = 0, **more: str) -> str:
    done = subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env={**clean(), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def killed_at(stage: str, journal: Path, *arguments: str) -> bool:
    """Kills a command, with the servers that it started, as soon as it has come so far."""
    with subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env=clean(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while process.poll() is None:
            if journal.exists() and stage in journal.read_text():
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
                process.kill()
                for child in map(int, children.split()):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                return True
            time.sleep(0.005)
    return False
