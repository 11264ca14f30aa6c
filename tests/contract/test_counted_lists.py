"""Lists that are only counted, and common table expressions that are computed where they are
mentioned: the answers are those of the statement as it is written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from mlcore.system_tables import storage
from mltables import inlined_ctes, statement_check, statement_execution
from mltables.file_pruning import evaluate_bounds
from mltables.permitted_rows import row_sources
from mltables.views import VIEWS
from sql import execution
from tests.contract.conftest import STEP
from tests.contract.span_lakes import READABLE, lakes

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(300)

LISTS = "WITH c AS (SELECT trace_id, collect_list({0}) AS members FROM spans GROUP BY trace_id)"
COUNTED = (
    f"{LISTS} SELECT trace_id, size(members) FROM c",
    f"{LISTS} SELECT c.trace_id, cardinality(c.members) + 1 FROM c WHERE array_size(c.members) > 1",
    f"{LISTS} SELECT t.trace_id, size(C.Members) FROM traces t LEFT JOIN c USING (trace_id)",
    f"{LISTS} SELECT size(a.members), size(b.members) FROM c a JOIN c b ON a.trace_id = b.trace_id",
    f"{LISTS} SELECT size(members) AS n, count(*) FROM c GROUP BY 1 HAVING n > 0 ORDER BY n",
    f"{LISTS} SELECT max(size(members)) OVER (PARTITION BY trace_id) FROM c",
    "SELECT trace_id, size(collect_list({0})) FROM spans GROUP BY trace_id",
    "SELECT size(array_agg({0}) FILTER (WHERE start_time_unix_nano > 3)) FROM spans",
    "SELECT size(m) FROM (SELECT collect_list({0}) AS m FROM spans WHERE name = 'none') x",
    "SELECT (SELECT sum(size(l.spans)) FROM (SELECT collect_list({0}) AS spans FROM spans "
    "GROUP BY trace_id) l), count(spans.name) FROM spans",
)
BUILT = (
    f"{LISTS} SELECT trace_id, members FROM c",
    f"{LISTS} SELECT size(members), members[0] FROM c",
    f"{LISTS} SELECT DISTINCT size(m) FROM (SELECT members AS m FROM c)",
    f"{LISTS} SELECT * FROM c",
    f"{LISTS} SELECT size(members), (SELECT count(*) FROM c d WHERE d.members = c.members) FROM c",
    f"{LISTS} SELECT size(a.members) FROM c a JOIN c b USING (members)",
    f"{LISTS} SELECT size(members) FROM (SELECT members FROM c UNION ALL SELECT members FROM c)",
    "SELECT size(m) FROM (SELECT DISTINCT collect_list({0}) AS m FROM spans GROUP BY trace_id) x",
    "SELECT size(collect_set({0})), size(collect_list(DISTINCT {0})) FROM spans",
    "SELECT size(collect_list(CASE WHEN kind > '' THEN {0} END)) FROM spans",
    "SELECT size(collect_list(named_struct('n', CAST({0} AS INT)))) FROM spans",
    "SELECT transform(array(1, 2), m -> size(l.m)) FROM (SELECT collect_list({0}) AS m "
    "FROM spans) l",
)
MEMBERS = (
    "name", "span_id", "end_time_unix_nano", "parent_span_id", "attributes['mlflow.spanType']",
    "named_struct('name', name, 'parent', parent_span_id)", "struct(name)", "NULL", "1",
)  # fmt: skip


@pytest.fixture
def lake(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(storage.FOLDER, str(lakes["some"]))
    storage.store.cache_clear()
    yield
    storage.store.cache_clear()


@contextmanager
def _unchanged() -> Iterator[None]:
    """Statements are translated without what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_check, "count_lists", lambda _: None)
        patch.setattr(inlined_ctes, "inline", lambda *_: None)
        yield


def _as_written(sql: str) -> str:
    with _unchanged():
        return statement_check.translate(sql).sql


def _answer(sql: str, folder: Path, *, as_written: bool) -> tuple[str, Any]:
    """DuckDB's SQL, and the answer or error."""
    with _unchanged() if as_written else nullcontext():
        statement = statement_check.translate(sql)
    views = {view: statement.reads[view] for view in VIEWS if view in statement.reads}
    wanted = evaluate_bounds(statement.bounds, {})
    folder.mkdir(exist_ok=True)
    sources = row_sources(statement.reads, None, folder, wanted)
    with statement_execution.open_views(sources, views) as connection:
        answer = statement_execution.execute(connection, statement.sql, {})
    rows = sorted(map(repr, answer["rows"]))
    return statement.sql, (answer["columns"], answer["types"], rows)


@pytest.mark.parametrize("sql", COUNTED)
def test_a_list_that_is_only_counted_is_not_built(sql: str, lake: None, tmp_path: Path) -> None:
    for member in MEMBERS[COUNTED.index(sql) % STEP :: STEP]:
        statement = sql.format(member)
        counted, answer = _answer(statement, tmp_path, as_written=False)
        built, wanted = _answer(statement, tmp_path, as_written=True)
        assert " list(" not in f" {counted}".replace("(list(", " list("), statement
        assert "list(" in built
        assert answer == wanted, statement


@pytest.mark.parametrize("sql", BUILT)
def test_a_list_that_may_be_used_in_another_way_is_built(sql: str) -> None:
    statement = sql.format("name")
    translated = statement_check.translate(statement).sql
    assert "list(" in translated
    assert translated == _as_written(statement)


INLINED = (
    "WITH c AS (SELECT trace_id, name, parent_span_id FROM spans{0}) "
    "SELECT a.name, count(*) FROM c a JOIN c b USING (trace_id) GROUP BY a.name",
    "WITH e AS (SELECT experiment_id FROM experiments_latest), c AS (SELECT trace_id FROM spans "
    "WHERE experiment_id IN (SELECT experiment_id FROM e)) "
    "SELECT (SELECT count(*) FROM c), (SELECT count(DISTINCT trace_id) FROM c)",
    "WITH c AS (SELECT attributes['mlflow.spanType'] AS kind FROM spans{0}) "
    "SELECT kind FROM c UNION ALL SELECT upper(kind) FROM c",
)
KEPT = (
    "WITH c AS (SELECT uuid() AS r FROM spans) SELECT count(*) FROM c a JOIN c b ON a.r = b.r",
    "WITH c AS (SELECT name FROM spans WHERE trace_id IN (SELECT run_id FROM runs_latest LIMIT 3)) "
    "SELECT count(*) FROM c a JOIN c b USING (name)",
    "WITH n AS (SELECT trace_id FROM spans GROUP BY 1), c AS (SELECT name FROM spans WHERE "
    "trace_id IN (SELECT trace_id FROM n)) SELECT count(*) FROM c a JOIN c b USING (name)",
    "WITH c AS (SELECT trace_id, collect_list(name) AS l FROM spans GROUP BY 1 ORDER BY 2 LIMIT 5) "
    "SELECT trace_id, size(l) FROM c",
    "SELECT size(collect_list(struct(attributes[name]))) FROM spans",
    "SELECT size(collect_list(struct(events[5]))) FROM spans",
    "WITH c AS (SELECT rand() AS r FROM spans) SELECT count(*) FROM c a JOIN c b ON a.r = b.r",
    "WITH c AS (SELECT name, count(*) AS n FROM spans GROUP BY 1) SELECT * FROM c a JOIN c b "
    "USING (name)",
    "WITH c AS (SELECT max(name) AS n FROM spans) SELECT a.n FROM c a JOIN c b USING (n)",
    "WITH c AS (SELECT DISTINCT name FROM spans) SELECT a.name FROM c a JOIN c b USING (name)",
    "WITH c AS (SELECT name FROM spans LIMIT 1) SELECT a.name FROM c a JOIN c b USING (name)",
    "WITH c AS (SELECT name, row_number() OVER (ORDER BY span_id) AS n FROM spans) "
    "SELECT count(*) FROM c a JOIN c b USING (n)",
    "WITH c AS (SELECT name FROM spans WHERE trace_id IN (SELECT trace_id FROM traces)) "
    "SELECT count(*) FROM c a JOIN c b USING (name)",
    "WITH c AS (SELECT trace_id FROM trace_unified) SELECT count(*) FROM c a JOIN c b "
    "USING (trace_id)",
    "WITH c AS (SELECT name FROM spans) SELECT count(*) FROM c",
    "WITH c AS (SELECT name FROM spans) SELECT count(*) FROM c, c d, c e, c f, c g",
    "WITH c AS (SELECT explode(map_keys(attributes)) AS k FROM spans) SELECT count(*) "
    "FROM c a JOIN c b USING (k)",
)


@pytest.mark.parametrize("sql", INLINED)
def test_a_choice_of_rows_is_computed_where_it_is_mentioned(
    sql: str, lake: None, tmp_path: Path
) -> None:
    conditions = ["", " WHERE name <> 'name 1'", " WHERE attributes['own'] IS NULL AND kind > ''"]
    for condition in random.Random(5).sample(conditions, len(conditions)):
        statement = sql.format(condition)
        inlined, answer = _answer(statement, tmp_path, as_written=False)
        assert "NOT MATERIALIZED" in inlined
        assert answer == _answer(statement, tmp_path, as_written=True)[1], statement


@pytest.mark.parametrize("sql", KEPT)
def test_other_expressions_are_left_to_the_engine(sql: str) -> None:
    assert statement_check.translate(sql).sql == _as_written(sql)


def test_computations_do_not_multiply() -> None:
    """Each of thirty expressions mentions the one before it twice."""
    previous, definitions = "", []
    for number in range(30):
        twice = f"trace_id IN (SELECT trace_id FROM {previous})" if previous else "true"
        definitions.append(f"c{number} AS (SELECT trace_id FROM spans WHERE {twice} AND {twice})")
        previous = f"c{number}"
    statement = f"WITH {', '.join(definitions)} SELECT count(*) FROM c29"
    assert statement_check.translate(statement).sql.count("NOT MATERIALIZED") == 1
    nested = "SELECT trace_id FROM spans"
    for number in range(12):
        nested = (
            f"WITH c{number} AS ({nested}) SELECT trace_id FROM spans WHERE trace_id IN "
            f"(SELECT trace_id FROM c{number}) AND trace_id IN (SELECT trace_id FROM c{number})"
        )
    assert statement_check.translate(nested).sql.count("NOT MATERIALIZED") == 1


def test_counts_are_those_of_the_rows_that_the_caller_may_read(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rows of others, and without them in the tables at all."""
    statements = [*(sql.format("name") for sql in COUNTED), INLINED[0].format("")]
    answers = []
    for folder in ("some", "alone"):
        monkeypatch.setenv(storage.FOLDER, str(lakes[folder]))
        storage.store.cache_clear()
        asked = [{"sql": sql, "parameters": {}, "workspaces": READABLE} for sql in statements]
        answers.append([sorted(map(repr, execution.run_query(each)["rows"])) for each in asked])
    storage.store.cache_clear()
    assert answers[0] == answers[1]


def test_an_error_of_a_counted_member_stays(lake: None) -> None:
    sql = "SELECT size(collect_list(named_struct('n', CAST(name AS INT)))) FROM spans"
    with pytest.raises(errors.InvalidParameterValue, match="CAST_INVALID_INPUT"):
        execution.run_query({"sql": sql, "parameters": {}, "workspaces": None})
