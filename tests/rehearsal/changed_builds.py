"""Copies of a build with one file changed."""

from __future__ import annotations

import shutil
from pathlib import Path


def changed(build: Path, folder: Path, path: str, before: str, after: str, count: int = -1) -> Path:
    """A build whose sources differ in one place."""
    made = folder / "build"
    shutil.copytree(build, made)
    source = made / path
    text = source.read_text()
    assert before in text
    source.write_text(text.replace(before, after, count))
    for compiled in source.parent.glob(f"__pycache__/{source.stem}.*"):
        compiled.unlink()
    return made
