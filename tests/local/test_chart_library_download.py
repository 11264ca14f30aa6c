"""The chart library is the pinned one, and nothing else of its archive is kept."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import tarfile
import threading
from pathlib import Path

import pytest

from local.http.chart_library_download import PUBLIC_REGISTRY, WANTED, main, registry, unpack
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


@pytest.mark.parametrize("lacking", WANTED)
def test_an_archive_that_lacks_a_file_is_refused(tmp_path: Path, lacking: str) -> None:
    archive, folder = tmp_path / "a.tgz", tmp_path / "folder"
    folder.mkdir()
    digest = _archive(archive, [name for name in WANTED if name != lacking])
    with pytest.raises(ValueError, match=f"lacks {lacking}"):
        unpack(archive, digest, folder)
    assert not [*folder.iterdir()]


def test_it_is_fetched_from_the_registry_that_npm_would_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, folder = tmp_path / "served", tmp_path / "a folder"
    (served / "npm/charts/-").mkdir(parents=True)
    folder.mkdir()
    digest = _archive(served / "npm/charts/-/charts-1.2.3.tgz", list(WANTED))
    empty = _archive(served / "npm/charts/-/charts-1.2.5.tgz", ["package/other.js"])
    (served / "npm/charts/-/charts-1.2.6.tgz").write_bytes(b"text")
    text = hashlib.sha512(b"text").hexdigest()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/npm/")
        main("charts", "1.2.3", digest, folder)
        assert {path.name for path in folder.iterdir()} == set(WANTED.values())
        for version, sha512 in (
            *(("1.2.4", digest), ("1.2.3", "0" * 128)),
            *(("1.2.5", empty), ("1.2.6", text)),
        ):
            with pytest.raises(SystemExit, match=r"charts 1\.2"):
                main("charts", version, sha512, folder)
        assert not (folder / "archive.tgz").exists()
        server.shutdown()


def test_the_registry_is_that_of_npms_settings(tmp_path: Path) -> None:
    assert registry(tmp_path, {}) == PUBLIC_REGISTRY
    (tmp_path / ".npmrc").write_text("save=false\n registry = https://a.example/npm\n")
    assert registry(tmp_path, {}) == "https://a.example/npm"
    other = tmp_path / "other"
    other.write_text('registry="https://b.example"\n')
    assert registry(tmp_path, {"npm_config_userconfig": str(other)}) == "https://b.example"
    assert registry(tmp_path, {"npm_config_registry": "https://c.example"}) == "https://c.example"


def test_what_make_setup_brings_carries_its_licence() -> None:
    """A report holds the library, and no script of a page may hold the end of its element."""
    library = (CHARTS / "echarts.js").read_text(encoding="utf-8")
    assert "Licensed to the Apache Software Foundation" in library[:200]
    assert "</script" not in library
    assert "<!--" not in library
    assert "Apache License" in (CHARTS / "echarts.LICENSE.txt").read_text()
    assert "Apache ECharts" in (CHARTS / "echarts.NOTICE.txt").read_text()
