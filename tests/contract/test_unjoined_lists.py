"""Exploded spans and assessments are read without their traces where nothing else of a trace is
named, and mean what they mean with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcore import errors
from mlcore.system_tables import storage
from mltables import statement_check
from mltables.unjoined_lists import ELEMENT
from sql import execution
from tests.contract.conftest import EXAMPLES
from tests.contract.span_lakes import READABLE, lakes
from tests.contract.translated_statements import answer_of

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(600)

SPANS = "trace_unified LATERAL VIEW explode(spans) l AS x"
UNJOINED = (
    f"SELECT x.name, count(*) FROM {SPANS} GROUP BY 1",
    f"SELECT trace_id, x.span_id, x.attributes['mlflow.spanType'] FROM {SPANS}",
    f"SELECT experiment_id, x.attributes FROM {SPANS} WHERE experiment_id = '1'",
    f"SELECT request_time, x.span_id FROM {SPANS} WHERE request_time >= '2026-01-03'",
    "SELECT t.trace_id, l.x.name FROM trace_unified t LATERAL VIEW explode(t.spans) l AS x",
    "SELECT `the t`.trace_id, x.name FROM trace_unified `the t` LATERAL VIEW explode(spans) l AS x",
    "SELECT y.name, count(*) FROM (SELECT explode(spans) AS y FROM trace_unified) GROUP BY 1",
    "WITH c AS (SELECT trace_id, explode(spans) AS y FROM trace_unified WHERE experiment_id = '2') "
    "SELECT a.trace_id, a.y.span_id, b.y.name FROM c a JOIN c b USING (trace_id)",
    f"SELECT x.span_id, k FROM {SPANS} LATERAL VIEW explode(map_keys(x.attributes)) m AS k",
    "SELECT x.span_id, o.n FROM trace_unified t LATERAL VIEW explode(t.spans) l AS x "
    "JOIN (SELECT '1' AS experiment_id, 3 AS n) o USING (experiment_id)",
    "SELECT x.span_id, o.n FROM trace_unified t LEFT JOIN (SELECT '1' AS e, 3 AS n) o "
    "ON o.e = t.experiment_id LATERAL VIEW explode(t.spans) l AS x",
    "SELECT j.assessment_id FROM assessments j "
    f"WHERE j.trace_id IN (SELECT x.trace_id FROM {SPANS})",
    "SELECT a.assessment_name, count(*) FROM trace_unified LATERAL VIEW explode(assessments) l "
    "AS a WHERE trace_id > 'tr-3' GROUP BY 1",
    f"SELECT x FROM {SPANS} WHERE trace_id < 'tr-9'",
    f"SELECT x.name, size(spans) FROM {SPANS}",
)
JOINED = (
    f"SELECT x.name FROM {SPANS} WHERE state = 'OK'",
    f"SELECT x.name, workspace_id FROM {SPANS}",
    f"SELECT x.name, transform(spans, s -> s.name) FROM {SPANS}",
    f"SELECT * FROM {SPANS}",
    "SELECT x.name FROM trace_unified LATERAL VIEW OUTER explode(spans) l AS x",
    "SELECT x.name FROM trace_unified t LATERAL VIEW explode(t.spans) l AS x "
    "JOIN trace_unified o USING (trace_id)",
    "SELECT x.name FROM trace_unified t LATERAL VIEW explode(t.spans) l AS x "
    "JOIN trace_metadata o USING (trace_id)",
    "SELECT x.name FROM trace_unified t FULL JOIN (SELECT 'none' AS e) o "
    "ON o.e = t.trace_id LATERAL VIEW explode(t.spans) l AS x",
    "SELECT x.name FROM trace_unified t RIGHT JOIN (SELECT 'none' AS e) o "
    "ON o.e = t.trace_id LATERAL VIEW explode(t.spans) l AS x",
)


CALLERS: tuple[list[str] | None, ...] = (None, ["team-a"], [])
"""Whom a statement is asked for beside who may read a part; `make test` takes one in turn."""


def _answer(sql: str, workspaces: list[str] | None, folder: Path, *, from_maps: bool) -> str:
    statement = statement_check.translate(sql, from_maps=from_maps)
    assert not (from_maps and ELEMENT in statement.sql)
    return answer_of(statement, workspaces, folder)


@pytest.mark.parametrize("sql", [*UNJOINED, *JOINED])
def test_an_answer_is_that_of_the_join(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    statement = statement_check.translate(sql)
    assert (ELEMENT in statement.sql) is (sql in UNJOINED)
    if sql in UNJOINED:
        assert "traces" not in statement.reads
    monkeypatch.setenv(storage.FOLDER, str(lakes["some"]))
    storage.store.cache_clear()
    turn = [*UNJOINED, *JOINED].index(sql) % len(CALLERS)
    others = CALLERS if EXAMPLES > 1 else CALLERS[turn : turn + 1]
    for number, workspaces in enumerate((READABLE, *others)):
        with_traces = _answer(sql, workspaces, tmp_path / f"{number}-joined", from_maps=True)
        without = _answer(sql, workspaces, tmp_path / f"{number}-not", from_maps=False)
        assert without == with_traces
        assert workspaces != READABLE or "SECRET" not in without
    storage.store.cache_clear()


@pytest.mark.parametrize("of", ["", "trace_unified.", "l.", "x."])
def test_a_name_of_the_column_is_that_of_no_column(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    monkeypatch.setenv(storage.FOLDER, str(lakes["some"]))
    storage.store.cache_clear()
    told = []
    for name in (ELEMENT, "inner_elements"):
        with pytest.raises(errors.InvalidParameterValue) as refused:
            execution.run_query({"sql": f"SELECT {of}{name} FROM {SPANS}", "parameters": {}})
        told.append(str(refused.value).replace(name.removeprefix("inner_"), "…"))
    storage.store.cache_clear()
    assert told[0] == told[1]
