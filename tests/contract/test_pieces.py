"""Files of few, large rows: texts that a file holds twice count twice."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlcore.system_tables import storage
from mltables import row_replacement
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.snapshot import Snapshot
from mltables.table_commit import TableCommit
from mltables.table_definitions import SPANS, open_or_create


@pytest.mark.parametrize(("parent", "files"), [("NULL", 4), ("'a'", 3)])
def test_texts_of_roots_fill_a_piece_twice(
    parent: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(storage.FOLDER, str(tmp_path / "lake"))
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "scratch"))
    storage.store.cache_clear()
    monkeypatch.setattr(row_replacement, "PIECE_BYTES", 150_000)
    time = "'2026-01-01'::TIMESTAMPTZ"
    values = (
        f"'0', 'd', '1', 't' || i, {time}, 's' || i, {parent}, 'n', 'k', {time}, i, i, "
        "MAP {'mlflow.spanInputs': repeat('x', 100_000)}, [], [], {'message': '', 'code': ''}"
    )
    typed = ", ".join(f"{name}::{kind} AS {name}" for name, kind, *_ in SPANS.columns)
    made = f"(SELECT {values} FROM range(4) r(i)) made({SPANS.names})"
    with Lake() as lake, connect(tmp_path) as connection:
        snapshot = Snapshot(lake, SPANS, open_or_create(lake, SPANS))
        change = TableCommit(connection, lake, snapshot, tmp_path)
        row_replacement._write_pieces(
            connection,
            cast("Any", SimpleNamespace(table=SPANS)),
            change,
            "2026-01-01",
            f"(SELECT {typed}, '' AS file FROM {made})",
        )
        assert len(change._actions) == files
    storage.store.cache_clear()
