"""The catalog is loaded at the start, when a file changes, and again where that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.command_line import parse
from local.events.catalog_watch import CatalogWatch


def test_it_loads_what_has_changed(tmp_path: Path) -> None:
    loads: list[int] = []
    failing = [False]

    def load() -> None:
        if failing[0]:
            raise ValueError
        loads.append(1)

    watch = CatalogWatch(tmp_path, load)
    for _ in range(2):
        watch.check()
    assert len(loads) == 1
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "sources.yaml").write_text("catalogs: []")
    failing[0] = True
    watch.check()
    failing[0] = False
    for _ in range(2):
        watch.check()
    assert len(loads) == 2
    (tmp_path / "sub" / "sources.yaml").unlink()
    watch.check()
    assert len(loads) == 3


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    assert parse(["--ephemeral", "--catalog", str(tmp_path)]).catalog == tmp_path.resolve()
    assert parse(["--ephemeral"]).catalog is None
    with pytest.raises(SystemExit):
        parse(["--catalog", str(tmp_path / "missing")])
