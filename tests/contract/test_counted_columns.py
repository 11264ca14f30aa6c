"""``count(column)`` counts rows where the column is never NULL, and values everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcore.system_tables import storage
from mltables import statement_check
from tests.contract.span_lakes import lakes, use
from tests.contract.translated_statements import answer_of

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(600)

ROWS = (
    "SELECT count(span_id) FROM spans",
    "SELECT u.trace_id, COUNT(s.SPAN_ID) AS n FROM trace_unified u JOIN otel_spans s "
    "ON s.trace_id = u.trace_id GROUP BY 1 HAVING count(s.span_id) > 1",
    "SELECT s.name, count(s.trace_id) FILTER (WHERE s.parent_span_id IS NULL) "
    "FROM spans s LEFT JOIN traces t ON t.trace_id = s.span_id GROUP BY 1",
    "SELECT span_id, count(spans.span_id) OVER (PARTITION BY name) FROM spans",
)
VALUES = (
    "SELECT count(parent_span_id) FROM spans",
    "SELECT count(DISTINCT trace_id) FROM spans",
    "SELECT count(s.span_id) FROM traces t LEFT JOIN spans s ON s.span_id = t.trace_id",
    "SELECT count(s.span_id) FROM spans s RIGHT JOIN traces t ON s.span_id = t.trace_id",
    "SELECT count(s.span_id), count(t.trace_id) FROM spans s FULL JOIN traces t "
    "ON s.span_id = t.trace_id",
    "SELECT count(s.span_id) FROM traces t JOIN spans s ON s.trace_id = t.trace_id "
    "FULL JOIN (SELECT 'x' AS y) o ON o.y = s.span_id",
    "SELECT count(span_id) FROM (SELECT nullif(span_id, span_id) AS span_id FROM spans)",
    "SELECT name, count(name), count(trace_id) FROM spans GROUP BY ROLLUP (name, trace_id)",
    "SELECT count(span_id) FROM traces t LEFT JOIN spans s ON s.span_id = t.trace_id",
    "SELECT count(span_id) FROM spans AS s(a, b, c, d, e, f, span_id, h, i, j, k, l, m, n, o, p)",
    "SELECT count(s.span_id) FROM traces t JOIN spans s RIGHT JOIN assessments a "
    "ON s.span_id = a.assessment_id ON t.trace_id = a.trace_id",
    "SELECT (SELECT count(s.span_id) FROM traces t WHERE t.trace_id = 'x') FROM spans s",
)


@pytest.fixture(autouse=True)
def lake(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use(lakes["some"], monkeypatch)
    yield
    storage.store.cache_clear()


def _are_equal(sql: str, folder: Path) -> None:
    answers = [
        answer_of(statement_check.translate(sql, from_maps=written), None, folder / str(written))
        for written in (True, False)
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("sql", ROWS)
def test_rows_are_counted_without_ids(sql: str, tmp_path: Path) -> None:
    assert "count(*)" in statement_check.translate(sql).sql.lower()
    _are_equal(sql, tmp_path)


@pytest.mark.parametrize("sql", VALUES[:-1])
def test_values_are_counted_where_they_may_be_missing(sql: str, tmp_path: Path) -> None:
    assert "count(*)" not in statement_check.translate(sql).sql.lower()
    _are_equal(sql, tmp_path)


def test_a_window_over_groups_reads_no_other_column() -> None:
    sql = "SELECT name, count(span_id) OVER () FROM spans GROUP BY name"
    assert "count(*)" not in statement_check.translate(sql).sql.lower()


def test_an_outer_column_is_left_alone() -> None:
    assert "count(*)" not in statement_check.translate(VALUES[-1]).sql.lower()
