"""The administrator for whom imports run."""

from __future__ import annotations

import subprocess
import sys

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
