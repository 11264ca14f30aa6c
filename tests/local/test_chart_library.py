"""The chart library is the pinned one, and nothing else of its archive is kept."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from local.http.chart_library import WANTED, unpack
from local.http.ui_files import CHARTS


def _archive(path: Path, names: list[str]) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    return hashlib.sha512(path.read_bytes()).hexdigest()


def test_library_and_licence_are_taken_from_the_pinned_archive(tmp_path: Path) -> None:
    archive, folder = tmp_path / "a.tgz", tmp_path / "folder"
    folder.mkdir()
    digest = _archive(archive, [*WANTED, "package/other.js", "../outside"])
    unpack(archive, digest, folder)
    assert {path.name for path in folder.iterdir()} == set(WANTED.values())
    assert (folder / "echarts.js").read_text() == "package/dist/echarts.common.min.js"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "folder"]


def test_another_archive_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.tgz"
    digest = _archive(archive, list(WANTED))
    _archive(archive, [*WANTED, "package/more.js"])
    with pytest.raises(ValueError, match="instead of"):
        unpack(archive, digest, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_what_make_setup_brings_carries_its_licence() -> None:
    """A report holds the library, and no script of a page may hold the end of its element."""
    library = (CHARTS / "echarts.js").read_text(encoding="utf-8")
    assert "Licensed to the Apache Software Foundation" in library[:200]
    assert "</script" not in library
    assert "<!--" not in library
    assert "Apache License" in (CHARTS / "echarts.LICENSE.txt").read_text()
    assert "Apache ECharts" in (CHARTS / "echarts.NOTICE.txt").read_text()
