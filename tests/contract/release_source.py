"""The source of a release: template, functions and layers, as ``releases/NAME/source.tar.xz`` holds
them. ``git archive TAG template.yaml functions layers | xz -9e`` makes the file, when the release
is recorded."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.contract.released_data import RELEASES


def unpack(release: str, folder: Path) -> Path:
    """Unpacks a release's source below the folder and returns where it is."""
    target = folder / release
    with tarfile.open(RELEASES / release / "source.tar.xz") as archive:
        # The file is this repository's own, and Python before 3.11.4 has no filters.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(target, filter="data")
        else:
            archive.extractall(target)
    return target


def import_paths(source: Path) -> list[str]:
    """The folders from which functions import."""
    parts = ("functions", "layers/core/python", "layers/tables/python")
    return [str(source / part) for part in parts]
