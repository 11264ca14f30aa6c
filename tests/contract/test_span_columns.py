"""Attributes of spans that files also hold as columns: answers are those of the map, whatever files
the table has, and nobody sees the columns."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest

from mlcore import errors
from mlcore.system_tables import storage
from mltables import query_memory, statement_check, statement_execution
from mltables.file_pruning import evaluate_bounds
from mltables.permitted_rows import row_sources
from mltables.span_attribute_columns import COLUMNS, KEYS, PREFIX
from mltables.time_travel import Moment
from mltables.views import VIEWS
from tests.contract.span_lakes import NEARLY, READABLE, asked, error_of, lakes, use
from tests.contract.span_questions import Questions, RootQuestions

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(900)

QUESTIONS = int(os.environ.get("SPAN_COLUMNS_QUESTIONS", "16"))


@pytest.fixture
def lake(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The system tables of the product are those with both kinds of files."""
    use(lakes["some"], monkeypatch)
    yield
    storage.store.cache_clear()


def _answer(
    sql: str, workspaces: list[str] | None, folder: Path, *, from_maps: bool
) -> tuple[bool, str]:
    """As the process of a query does, here: whether columns were read, and rows or an error. Where
    the process would run the statement again, that is ``again``."""
    statement = statement_check.translate(sql, from_maps=from_maps)
    wanted = {} if from_maps else evaluate_bounds(statement.bounds, {})
    views = {view: statement.reads[view] for view in VIEWS if view in statement.reads}
    moments = [Moment(None, 1) for _ in statement.as_of]
    sources = row_sources(statement.reads, workspaces, folder, wanted, {}, moments)
    is_of_columns = PREFIX in statement.sql
    try:
        with statement_execution.open_views(sources, views) as connection:
            answer = statement_execution.execute(connection, statement.sql, {})
    except (duckdb.Error, RuntimeError) as error:
        if not from_maps and statement_execution.has_to_run_again(statement.sql, error):
            return is_of_columns, "again"
        return is_of_columns, f"error: {statement_execution.error_text(error)}"
    assert not answer["truncated"], sql
    rows = sorted(map(repr, answer["rows"]))
    return is_of_columns, repr((answer["columns"], answer["types"], rows))


@pytest.mark.parametrize("made", [Questions, RootQuestions])
@pytest.mark.parametrize("seed", range(1 + QUESTIONS // 100))
def test_each_answer_is_that_of_the_map(
    lakes: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    made: type[Questions],
) -> None:
    one = query_memory.DEPLOYED._replace(threads=1)
    monkeypatch.setattr(query_memory, "here", lambda: one)
    rng = random.Random(seed)
    questions = made(rng)
    read_columns = answered = 0
    for number in range(QUESTIONS):
        sql = questions.statement()
        if rng.random() < 0.2:
            sql += f" LIMIT {10**6}"
        try:
            statement_check.translate(sql)
        except statement_check.StatementRefused:
            with pytest.raises(statement_check.StatementRefused):
                statement_check.translate(sql, from_maps=True)
            continue
        workspaces = rng.choice((None, READABLE, ["team-a"], []))
        told = {}
        for name in ("none", "all", "some"):
            use(lakes[name], monkeypatch)
            folder = tmp_path / f"{number}-{name}"
            folder.mkdir()
            is_of_columns, told[name] = _answer(sql, workspaces, folder, from_maps=False)
            if told[name] == "again" or name == "none":
                of_map = _answer(sql, workspaces, folder, from_maps=True)
                assert not of_map[0]
                told[name], before = of_map[1], told[name]
                assert before in ("again", of_map[1]) or "error" in before, sql
        read_columns += is_of_columns
        if all(text.startswith("error") for text in told.values()):
            continue  # which of several rows fails first is a matter of chance
        assert told["all"] == told["none"], sql
        assert told["some"] == told["none"], sql
        answered += 1
    storage.store.cache_clear()
    # Else the statements would tell little.
    assert answered > QUESTIONS // 2
    assert read_columns > QUESTIONS // 3


KIND = "attributes['mlflow.spanType']"
OWN = "map('mlflow.spanType', 'own')"
STRUCT = f"struct({OWN} AS attributes)"
HIDING = (
    f"SELECT {OWN} AS attributes, count(*) FROM spans GROUP BY 1 HAVING {KIND} = 'own'",
    f"SELECT {STRUCT} AS s, count(*) FROM spans s GROUP BY 1 HAVING s.{KIND} = 'own'",
    f"SELECT {OWN} AS attributes FROM spans ORDER BY {KIND}",
    f"SELECT transform(array({OWN}), attributes -> {KIND}) AS v FROM spans",
    f"SELECT transform(array({STRUCT}), s -> s.{KIND}) AS v FROM spans s",
    f"SELECT transform(array({STRUCT}), x -> x.{KIND}) AS v "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    f"SELECT s.{KIND} FROM trace_unified LATERAL VIEW explode(spans) l AS s "
    f"JOIN (SELECT {OWN} AS attributes) s",
    f"SELECT x.{KIND} FROM (SELECT explode(spans) AS x FROM trace_unified) q "
    f"JOIN (SELECT {OWN} AS attributes) x",
    f"SELECT {STRUCT} AS x, count(*) FROM (SELECT explode(spans) AS x FROM trace_unified) "
    f"GROUP BY 1 HAVING x.{KIND} = 'own'",
    "WITH c AS (SELECT explode(spans) AS x FROM trace_unified) "
    f"SELECT (SELECT max(x.{KIND}) FROM (SELECT {STRUCT} AS x)) AS v FROM c",
    f"SELECT (SELECT max({KIND}) FROM (SELECT {OWN} AS attributes)) AS v FROM spans",
    f"SELECT (SELECT max(s.{KIND}) FROM (SELECT {OWN} AS attributes) s) AS v FROM spans s",
    f"SELECT {KIND} FROM spans JOIN (SELECT {OWN} AS attributes) o",
    f"SELECT {KIND} FROM spans LATERAL VIEW explode(array({OWN})) l AS attributes",
    f"SELECT o.{KIND} FROM spans s JOIN (SELECT {OWN} AS attributes) o",
)
"""Statements in which another value has the name of the map, or of the table, in some place."""


@pytest.mark.parametrize("sql", HIDING)
def test_a_name_means_what_it_means_without_columns(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    use(lakes["all"], monkeypatch)
    told = []
    for from_maps in (False, True):
        (tmp_path / str(from_maps)).mkdir()
        told.append(_answer(sql, None, tmp_path / str(from_maps), from_maps=from_maps)[1])
    assert told[0] in ("again", told[1])


def test_an_engine_gets_the_same_bytes_from_any_files_and_beside_any_rows(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = ", ".join(f"attributes['{key}']" for key in (KEYS[0], KEYS[2], "own", NEARLY[1]))
    statement = statement_check.translate(f"SELECT name, {looked_up} FROM system.mlflow.spans")
    assert "attributes" not in statement.reads["spans"]
    held = set()
    for name, folder in lakes.items():
        use(folder, monkeypatch)
        (tmp_path / name).mkdir()
        (source,) = row_sources(statement.reads, READABLE, tmp_path / name)
        (file,) = source.paths
        assert "attributes" not in polars.read_parquet(file).columns
        held.add(Path(file).read_bytes())
        assert "SECRET" not in str(polars.read_parquet(file).to_dicts())
    storage.store.cache_clear()
    assert len(held) == 1


def test_files_with_the_mark_have_these_columns() -> None:
    """Whoever changes the columns changes the mark: readers know the columns of a file by it."""
    from mltables.span_attribute_columns import DERIVED  # noqa: PLC0415
    from mltables.table_columns import DERIVED_MARK  # noqa: PLC0415

    assert len({column.lower() for column, _ in DERIVED}) == len(KEYS) + 3 == 27
    digest = hashlib.sha256(json.dumps(DERIVED).encode()).hexdigest()
    assert (DERIVED_MARK, digest[:16]) == ("part-a3-", "6761b4d4b7013da8")


# ------------------------------------------------------------------- nobody sees columns

UNKNOWN = PREFIX + "x" * 9
"""A name that no column has."""
PROBES = (
    "SELECT {0} FROM system.mlflow.spans",
    "SELECT {0}, attributes['mlflow.spanType'] FROM system.mlflow.spans",
    "SELECT s.{0} FROM system.mlflow.spans s WHERE s.attributes['mlflow.spanType'] = 'TOOL'",
    "SELECT attributes['mlflow.spanType'] AS k FROM spans GROUP BY 1 ORDER BY {0}",
    "SELECT attributes['mlflow.spanType'] FROM spans WHERE `{0}` IS NOT NULL",
    "SELECT attributes['mlflow.spanType'] FROM spans WHERE EXISTS (SELECT spans.{0})",
    "SELECT x.{0} FROM (SELECT attributes['mlflow.spanType'] FROM spans) x",
    "SELECT x.{0}, x.attributes['mlflow.spanType'] "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    "SELECT l.x.{0}, x.attributes['mlflow.spanType'] "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    "SELECT {0} FROM gateway_usage",
    "SELECT provider, {0} FROM gateway_usage",
    "SELECT provider FROM gateway_usage JOIN spans USING (trace_id, {0})",
    "SELECT provider, max(spans.{0}) FROM gateway_usage JOIN spans USING (trace_id) GROUP BY 1",
    "SELECT count(*) FROM spans a JOIN spans b USING ({0})",
    "SELECT {0} FROM spans VERSION AS OF 1",
    "SELECT hash({0}) FROM (SELECT attributes['mlflow.spanType'] FROM spans)",
)


@pytest.mark.usefixtures("lake")
def test_a_caller_who_knows_a_columns_name_learns_nothing() -> None:
    for number, probe in enumerate(PROBES):
        of_all = number % 2 == 0
        column, unknown_column = COLUMNS[KEYS[number % 3]], UNKNOWN
        if number // 2 % 2:
            column, unknown_column = column.upper(), unknown_column.upper()
        told, unknown = (
            error_of(probe.format(name), None if of_all else READABLE).lower()
            for name in (column, unknown_column)
        )
        short, nothing = (name.lower().removeprefix("inner_") for name in (column, unknown_column))
        assert told.replace(short, nothing) == unknown, probe
        assert not _columns_in(told.replace(short, "")), told


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("view", ["inner_spans", "mlflow.inner_spans", "system.mlflow.inner_spans"])
def test_the_view_with_the_columns_has_no_name(view: str) -> None:
    beside = "SELECT attributes['mlflow.spanType'] FROM spans"
    for sql in (f"SELECT * FROM {view}", f"SELECT ({beside} LIMIT 1) FROM {view}"):
        assert error_of(sql) == error_of(sql.replace("inner_", "other_")).replace(
            "other_", "inner_"
        )


SHOWN = (
    "SELECT * FROM spans",
    "SELECT s.* FROM spans s WHERE s.attributes['mlflow.spanType'] IS NOT NULL",
    "SELECT *, attributes['mlflow.spanType'] FROM spans",
    "SELECT s FROM spans s WHERE s.attributes['mlflow.spanType'] IS NOT NULL",
    "SELECT struct(s.*) FROM spans s WHERE attributes['mlflow.spanType'] IS NOT NULL",
    "SELECT a.*, b.attributes['mlflow.spanType'] FROM spans a JOIN spans b USING (span_id)",
    "SELECT *, g.provider FROM spans JOIN gateway_usage g USING (trace_id)",
    "SELECT * FROM gateway_usage NATURAL JOIN spans",
    "SELECT * FROM (SELECT attributes['mlflow.spanType'] FROM spans)",
    "SELECT *, (SELECT max(i.attributes['mlflow.spanType']) FROM spans i) FROM spans",
    "SELECT x, x.attributes['mlflow.spanType'] "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    "SELECT x.*, x.attributes['mlflow.spanType'] "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    "SELECT spans FROM trace_unified",
    "SELECT to_json(struct(attributes['mlflow.spanType'])) FROM spans",
    "SELECT element_at(attributes, 'mlflow.spanType') FROM spans",
    "DESCRIBE system.mlflow.spans",
    "SHOW COLUMNS IN system.mlflow.spans",
    "SHOW TABLES IN system.mlflow",
    "SELECT * FROM system.information_schema.columns",
    "SELECT * FROM system.information_schema.tables",
)


@pytest.mark.usefixtures("lake")
def test_no_answer_shows_a_column() -> None:
    for number, sql in enumerate(SHOWN):
        try:
            told = json.dumps(asked(sql, None if number % 2 else READABLE))
        except errors.InvalidParameterValue as refused:
            told = str(refused)
        assert not _columns_in(told), sql


FAILING = (
    "SELECT name FROM spans WHERE attributes['mlflow.spanType']",
    "SELECT CASE WHEN attributes['mlflow.spanType'] THEN 1 END FROM spans",
    "SELECT -attributes['mlflow.spanType'] FROM spans",
    "SELECT attributes['mlflow.spanType'] * 2 FROM spans",
    "SELECT date_add(attributes['mlflow.spanType'], 2) FROM spans",
    "SELECT sum(attributes['mlflow.spanType']) FROM spans",
    "SELECT CAST(attributes['mlflow.spanType'] AS INT) FROM spans WHERE attributes['own'] = 'a'",
    "SELECT sum(CAST(attributes['mlflow.spanType'] AS INT)) FROM spans",
    "SELECT CAST(x.attributes['mlflow.spanType'] AS BIGINT) "
    "FROM trace_unified LATERAL VIEW explode(spans) l AS x",
    "SELECT attributes['mlflow.spanType'] + missing FROM spans",
    "SELECT attributes['mlflow.spanType'].field FROM spans",
    "SELECT date_trunc('day', attributes['mlflow.spanType']) FROM spans",
    "SELECT attributes['mlflow.spanType'], count(*) FROM spans",
    "SELECT attributes['mlflow.spanType'] FROM spans GROUP BY name",
    "SELECT attributes['mlflow.spanType'] FROM spans a JOIN spans b USING (trace_id)",
    "SELECT attribute_mlflow_spantyp FROM spans WHERE attributes['mlflow.spanType'] = 'LLM'",
    "SELECT a.attributes['mlflow.spanType'] FROM spans a WHERE a.trace_id = (SELECT b.nothing)",
    "SELECT attributes['mlflow.spanType'] FROM spans ORDER BY attributes['mlflow.llm.model'] + x",
    "SELECT 1 FROM gateway_usage WHERE provider",
    "SELECT 1 FROM system.ai_gateway.usage WHERE destination_name",
    "SELECT destination_model + destination_name FROM system.ai_gateway.usage",
)


@pytest.mark.usefixtures("lake")
def test_errors_are_those_of_the_map(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the second lake has columns."""
    for sql in FAILING:
        errors = []
        for name in ("all", "none"):
            use(lakes[name], monkeypatch)
            errors.append(error_of(sql, READABLE))
        # Which of several values fails is a matter of chance.
        with_columns, without_columns = (error.split("'")[0] for error in errors)
        assert with_columns == without_columns, sql
        assert not [error for error in errors if _columns_in(error)], sql
        use(lakes["all"], monkeypatch)
        assert not _columns_in(error_of(sql)), sql


def _columns_in(text: str) -> list[str]:
    return [
        column
        for column in COLUMNS.values()
        if column.removeprefix("inner_") in text.lower() or PREFIX in text.lower()
    ]
