"""Packed files of spans: hold the same rows as before, root spans by themselves, and are changed
like other files."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mlcore.system_tables import storage
from tests.contract import span_files
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, tell

__all__ = ["tables"]

DAY = 86_400_000
LATE = 40_000 * DAY
"""Milliseconds after START: a day that is not over."""
QUESTIONS = (
    "SELECT trace_id, span_id, parent_span_id, attributes FROM spans",
    "SELECT attributes['mlflow.spanType'], count(*) FROM spans GROUP BY 1",
    "SELECT span_id FROM spans WHERE parent_span_id IS NULL OR parent_span_id = ''",
    "SELECT span_id FROM spans WHERE parent_span_id IS NOT NULL",
    "SELECT trace_id, size(spans) FROM trace_unified",
)


@pytest.mark.parametrize("seed", range(min(2, EXAMPLES)))
def test_packed_rows_are_the_same_rows(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    verification = pytest.importorskip("mltables.verification")
    monkeypatch.setattr("mltables.packed_files.LOOSE_FILES", 1)
    monkeypatch.setattr("mltables.packed_files.PACKED_ROWS", 3)
    monkeypatch.setattr("mltables.row_replacement.FULL_FILE_ROWS", 1)
    rng = random.Random(seed)
    experiments = [store.api.new_experiment(f"packed {number}") for number in range(2)]
    number = 0
    for _ in range(3):
        for experiment in experiments:
            made = []
            for at in (0, DAY, LATE):
                number += 1
                trace, kind = f"{number:032x}", rng.choice(("TOOL", "LLM"))
                made += [
                    span(trace, n, rng.choice((None, 1)) if n > 1 else None, start=at + n,
                         mlflow__spanType=kind)
                    for n in range(1, rng.randrange(2, 5))
                ]  # fmt: skip
            assert export(experiment, made).status == 200
        tables.follow()
    before = [_rows(tables, sql) for sql in QUESTIONS]
    assert len(_packed()) == 0
    for _ in range(4):
        upkeep.maintain_tables()
    packed = _packed()
    assert packed
    for file in packed:
        rows = span_files.rows(file)
        assert 0 < len(rows) <= 3
        assert len({row["parent_span_id"] is None for row in rows}) == 1, "roots are by themselves"
        assert len({row["request_time"].date() for row in rows}) == 1
    loose = [file for file in span_files.files() if file not in packed]
    late = [row["request_time"] for file in loose for row in span_files.rows(file)]
    assert late, "the day that is not over is not packed"
    assert min(late) > max(row["request_time"] for file in packed for row in span_files.rows(file))
    assert all(span_files.assert_columns_are_the_map())
    assert [_rows(tables, sql) for sql in QUESTIONS] == before
    version = _version()
    upkeep.maintain_tables()
    assert _version() == version, "a packed day is not packed again"

    # A trace in packed files changes, and one goes.
    changed, gone = f"{1:032x}", f"{4:032x}"
    assert export(experiments[0], [span(changed, 9, 1, start=7)]).status == 200
    body = {"experiment_id": experiments[1], "request_ids": [f"tr-{gone}"]}
    tell("POST", "2.0/traces/delete-traces", body)
    tables.follow()
    ids = {row["trace_id"] for row in tables.frame("spans").to_dicts()}
    assert f"tr-{changed}" in ids
    assert f"tr-{gone}" not in ids
    assert list(verification.verify()) == []


def _packed() -> list[Any]:
    return [file for file in span_files.files() if file.name.startswith("part-a3-packed-")]


def _rows(tables: Tables, sql: str) -> list[str]:
    return sorted(map(repr, tables.ask(sql)["rows"]))


def _version() -> int:
    lake = pytest.importorskip("deltalake")
    return int(lake.DeltaTable(storage.table_uri("spans")).version())


def test_files_of_small_rows_have_more_rows() -> None:
    packed_files = pytest.importorskip("mltables.packed_files")
    most = packed_files.most_rows_of
    assert most(1000, 0) == packed_files.PACKED_ROWS == most(500_000, 500_000 * 300)
    assert most(500_000, 500_000 * 10_000) == 20_000
    assert most(500_000, 500_000 * 1000) * 1000 <= packed_files.PACKED_BYTES
