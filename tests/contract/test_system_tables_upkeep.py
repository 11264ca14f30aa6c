"""A day that is over is sorted once, and the files that come late do not have it sorted again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]


def test_a_day_is_sorted_once(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    from mltables.duckdb_connection import connect  # noqa: PLC0415
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.table_definitions import HISTORY, open_or_create, writer_properties  # noqa: PLC0415

    monkeypatch.setattr(upkeep, "FILE_BYTES", 128 << 10)
    monkeypatch.setattr(upkeep, "SMALL_FILES", 50)  # nothing is merged but what is sorted
    lake = Lake()
    connection = connect(tables.folder)
    written = 0

    def append(count: int) -> None:
        nonlocal written
        kinds = {name: kind for name, kind, *_ in HISTORY.columns}
        values = {
            **{name: "'x'" for name, kind in kinds.items() if kind == "VARCHAR"},
            **dict.fromkeys(("insert_time", "metric_time"), "make_timestamp(n)::TIMESTAMPTZ"),
            "record_id": "md5(n::VARCHAR)",
            "run_id": "'run' || n % 20",
            "metric_step": "n",
            "metric_value": "CASE WHEN n % 10 = 0 THEN 'nan'::DOUBLE ELSE n END",
        }
        listed = ", ".join(f"{values[name]} AS {name}" for name in kinds)
        numbers = f"range({written}, {written + count}) AS numbers(n)"
        rows = connection.sql(f"SELECT {listed}, '2026-01-05' AS insert_date FROM {numbers}")
        write_deltalake(
            open_or_create(lake, HISTORY),
            rows,
            mode="append",
            writer_properties=writer_properties(HISTORY),
        )
        written += count

    def version() -> int:
        return DeltaTable(lake.uri(HISTORY.name)).version()

    for _ in range(3):
        append(5000)
    upkeep.maintain_tables()
    sorted_at = version()
    assert sorted_at == 4, "made, three times appended, and sorted at once"
    frame = tables.frame(HISTORY.name)
    assert (frame.height, frame["record_id"].n_unique()) == (written, written)
    actions = DeltaTable(lake.uri(HISTORY.name)).get_add_actions(flatten=True)
    low, high = (actions.column(f"{end}.run_id").to_pylist() for end in ("min", "max"))
    ends = sorted(zip(low, high, strict=True))
    assert len(ends) > 1
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    upkeep.maintain_tables()
    append(20)
    upkeep.maintain_tables()
    assert version() == sorted_at + 1, "what came late is no reason to write the day again"
    append(5000)
    upkeep.maintain_tables()
    assert version() == sorted_at + 3
    above = "SELECT count(*) FROM system.mlflow.run_metrics_history WHERE metric_value > 100"
    # NaN is the greatest value.
    assert tables.ask(above)["rows"] == [[written - 101 + 11]]
