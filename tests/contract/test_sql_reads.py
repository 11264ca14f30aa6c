"""Which columns of a table a statement is given."""

from __future__ import annotations

import pytest

FROM = "FROM system.mlflow.runs_latest r"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (f"SELECT count(*) {FROM}", set()),
        (f"SELECT r.status, count(*) {FROM} GROUP BY 1", {"status"}),
        (f"SELECT STATUS {FROM} WHERE params['a'] = tags['b']", {"status", "params", "tags"}),
        (f"SELECT u.k {FROM} LATERAL VIEW explode(map_keys(params)) u AS k", {"params"}),
        (f"SELECT * {FROM}", None),
        (f"SELECT r.* {FROM}", None),
        (f"SELECT hash(*) {FROM}", None),
        (f"SELECT concat(*) {FROM}", None),
        (f"SELECT count(DISTINCT *) {FROM}", None),
        (f"SELECT r {FROM}", None),
        (f"SELECT count(r) {FROM}", None),
        (f"SELECT 1 AS one {FROM} NATURAL JOIN system.mlflow.runs_latest s", None),
        ("SELECT c FROM system.mlflow.runs_latest AS r(a, b, c)", None),
    ],
)
def test_what_has_a_value_for_each_set_of_columns_reads_all(
    sql: str, columns: set[str] | None
) -> None:
    """Any other statement the columns that it names; None for all."""
    gate = pytest.importorskip("mltables.statement_check")
    tables = pytest.importorskip("mltables.table_definitions")
    if columns is None:
        columns = {name for name, *_ in tables.RUNS.columns}
    assert gate.translate(sql).reads == {"runs_latest": columns}
