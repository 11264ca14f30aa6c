"""Metadata of traces that files also hold as columns: the gateway's usage is that of the map,
whatever files the table has, and nobody sees the columns."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest
from deltalake import DeltaTable

from mlcore import errors
from mlcore.system_tables import storage
from mltables import query_memory, statement_check, statement_execution
from mltables.permitted_rows import row_sources
from mltables.table_columns import DERIVED_MARK
from mltables.time_travel import Moment
from mltables.trace_metadata_columns import COLUMNS, DERIVED, KEYS, PREFIX, PUBLISHED, VIEW
from mltables.views import VIEWS
from tests.contract.span_lakes import READABLE, asked, error_of, lakes, use

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(600)

SHOWN = ("endpoint_id", "request_type", "caller", "user_name")
"""What the view shows of the keys, in their order."""
CALLERS: tuple[list[str] | None, ...] = (None, READABLE, ["team-a"], [])


@pytest.fixture(autouse=True)
def forget_store() -> Iterator[None]:
    yield
    storage.store.cache_clear()


def _stored(workspaces: list[str] | None) -> list[list[str | None]]:
    """The calls in the files, read past the product."""
    rows = []
    for row in polars.scan_delta(storage.table_uri("traces")).collect().to_dicts():
        metadata = {entry["key"]: entry["value"] for entry in row["trace_metadata"]}
        is_shown = workspaces is None or row["workspace_id"] in workspaces
        if is_shown and KEYS[0] in metadata:
            rows.append([row["trace_id"], *map(metadata.get, KEYS[: len(SHOWN)])])
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", ["all", "none", "some"])
def test_calls_are_those_of_the_map(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    use(lakes[name], monkeypatch)
    whole = f"SELECT trace_id, {', '.join(SHOWN)} FROM system.mlflow.gateway_usage"
    same = (
        "SELECT request_id, endpoint_id, api_type, user_agent, requester "
        "FROM system.ai_gateway.usage"
    )
    for workspaces in CALLERS:
        expected = _stored(workspaces)
        for sql in (whole, same):
            assert sorted(asked(sql, workspaces)["rows"], key=repr) == expected
        for place, column in enumerate(SHOWN, 1):
            sql = f"SELECT count({column}), count(*) FROM gateway_usage WHERE {column} <> 'a'"
            wanted = [row for row in expected if row[place] not in (None, "a")]
            assert asked(sql, workspaces)["rows"] == [[len(wanted), len(wanted)]]
    assert len(_stored(None)) > len(_stored(READABLE)) > 0


def test_a_file_has_the_columns_that_its_name_says(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: dict[str, set[bool]] = {}
    for name, folder in lakes.items():
        use(folder, monkeypatch)
        delta = DeltaTable(storage.table_uri("traces"))
        assert not {field.name for field in delta.schema().fields if PREFIX in field.name}
        for uri in delta.file_uris():
            file = Path(uri.removeprefix("file://"))
            is_marked = file.name.startswith(DERIVED_MARK)
            marked.setdefault(name, set()).add(is_marked)
            for row in polars.read_parquet(file, hive_partitioning=False).to_dicts():
                metadata = {entry["key"]: entry["value"] for entry in row["trace_metadata"]}
                columns = {key: value for key, value in row.items() if key.startswith(PREFIX)}
                expected = {column: metadata.get(key) for key, column in COLUMNS.items()}
                assert columns == (expected if is_marked else {})
    assert (marked["all"], marked["none"], marked["some"]) == ({True}, {False}, {True, False})


def test_files_with_the_mark_have_these_columns() -> None:
    """Whoever changes the columns changes the mark: readers know the columns of a file by it."""
    digest = hashlib.sha256(json.dumps(DERIVED).encode()).hexdigest()
    assert (DERIVED_MARK, digest[:16], len(KEYS)) == ("part-a3-", "a661c90ae68ec799", 6)


def test_an_engine_gets_the_same_bytes_from_any_files_and_beside_any_rows(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = statement_check.translate(f"SELECT {', '.join(SHOWN)} FROM gateway_usage")
    assert "trace_metadata" not in statement.reads["traces"]
    held = set()
    for name, folder in lakes.items():
        use(folder, monkeypatch)
        (tmp_path / name).mkdir()
        (source,) = row_sources(statement.reads, READABLE, tmp_path / name)
        (file,) = source.paths
        held.add(Path(file).read_bytes())
        assert "SECRET" not in str(polars.read_parquet(file).to_dicts())
    assert len(held) == 1


LOOKED_UP = (*KEYS, *PUBLISHED, "note", "mlflow.trace.Session")
SOURCES = (
    ("traces", ""),
    ("system.mlflow.traces t", "t."),
    ("trace_unified u", ""),
    ("a.b.c_trace_metadata M", "m."),
    ("traces t JOIN spans s USING (experiment_id, trace_id)", ""),
    ("trace_unified u JOIN spans s ON s.trace_id = u.trace_id", "u."),
    ("trace_unified LATERAL VIEW explode(spans) l AS x", "trace_unified."),
    ("trace_unified u LATERAL VIEW OUTER explode(assessments) l AS x", ""),
    ("trace_unified u LATERAL VIEW explode(spans) l AS trace_metadata", "u."),
    ("(SELECT trace_id, trace_metadata FROM traces) t", "t."),
    ("(SELECT trace_id, map('note', 'own') AS trace_metadata FROM traces) t", ""),
    ("traces VERSION AS OF 1", ""),
)


def _lookup(rng: random.Random, of: str) -> str:
    key, name = rng.choice(LOOKED_UP), rng.choice(("trace_metadata", "TRACE_METADATA"))
    return rng.choice(
        (f"{of}{name}['{key}']", f"element_at({of}{name}, '{key}')", f"({of}{name})['{key}']")
    )


def _looking_up(rng: random.Random) -> str:
    source, of = rng.choice(rng.choice((SOURCES[:4], SOURCES)))
    value, other = _lookup(rng, of), _lookup(rng, of)
    where = rng.choice(("true", f"{other} IS NOT NULL", f"{value} <> 'a'", "trace_id > 'tr-5'"))
    return rng.choice(
        (
            f"SELECT {value}, upper({other}) FROM {source} WHERE {of}{where}"
            if where.startswith("trace_id")
            else f"SELECT {value}, upper({other}) FROM {source} WHERE {where}",
            f"SELECT {value} AS k, count(*), max({other}) FROM {source} GROUP BY k",
            f"SELECT {value}, size({of}trace_metadata) FROM {source}",
            f"SELECT DISTINCT {value} FROM {source} ORDER BY {value}",
            f"SELECT {value} AS trace_metadata FROM {source} ORDER BY {other}",
            f"WITH c AS (SELECT {value} AS k FROM {source}) SELECT a.k FROM c a JOIN c b USING (k)",
            f"SELECT get_json_object({value}, '$.total_tokens')::BIGINT FROM {source}",
            f"SELECT count(*) FROM {source} WHERE exists(array('a'), x -> {value} = x)",
        )
    )


def _told(sql: str, workspaces: list[str] | None, folder: Path, *, from_maps: bool) -> str:
    folder.mkdir()
    statement = statement_check.translate(sql, from_maps=from_maps)
    views = {view: statement.reads[view] for view in VIEWS if view in statement.reads}
    moments = [Moment(None, 1) for _ in statement.as_of]
    sources = row_sources(statement.reads, workspaces, folder, {}, {}, moments)
    try:
        with statement_execution.open_views(sources, views) as connection:
            answer = statement_execution.execute(connection, statement.sql, {})
    except (duckdb.Error, RuntimeError) as error:
        is_again = not from_maps and statement_execution.has_to_run_again(statement.sql, error)
        return "again" if is_again else statement_execution.error_text(error)
    return repr((answer["columns"], answer["types"], sorted(map(repr, answer["rows"]))))


@pytest.mark.parametrize("seed", range(2))
def test_a_lookup_is_that_of_the_map(
    lakes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    use(lakes["some"], monkeypatch)
    one = query_memory.DEPLOYED._replace(threads=1)
    monkeypatch.setattr(query_memory, "here", lambda: one)
    rng = random.Random(seed)
    rewritten = 0
    for number in range(24):
        sql = _looking_up(rng)
        workspaces = rng.choice((None, READABLE, []))
        of_map = _told(sql, workspaces, tmp_path / f"{number}-map", from_maps=True)
        told = _told(sql, workspaces, tmp_path / f"{number}-columns", from_maps=False)
        assert told in (of_map, "again"), sql
        statement = statement_check.translate(sql).sql
        rewritten += told != "again" and (PREFIX in statement or VIEW in statement)
    assert rewritten > 6


SORTED = "ORDER BY trace_metadata['{1}'] DESC NULLS LAST, trace_id DESC LIMIT 3"
NAMED_LIKE_A_COLUMN = (
    f"SELECT trace_id AS {{0}} FROM traces {SORTED}",
    f"SELECT upper(trace_id) AS {{0}}, trace_metadata['{{1}}'] AS v FROM traces {SORTED}",
    "SELECT t.trace_id, trace_metadata['{1}'] FROM traces t FULL JOIN model_versions o USING ({0})",
)


@pytest.mark.parametrize("sql", NAMED_LIKE_A_COLUMN)
@pytest.mark.parametrize(
    ("column", "key"), [("session_id", "mlflow.trace.session"), ("user_id", "mlflow.trace.user")]
)
def test_a_lookup_never_means_an_alias_or_a_merged_column(
    lakes: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sql: str,
    column: str,
    key: str,
) -> None:
    use(lakes["some"], monkeypatch)
    statement = sql.format(column, key)
    of_map = _told(statement, None, tmp_path / "map", from_maps=True)
    told = _told(statement, None, tmp_path / "columns", from_maps=False)
    assert told in (of_map, "again")


UNKNOWN = PREFIX + "x" * 9
"""A name that no column has."""
PROBES = (
    "SELECT {0} FROM system.mlflow.traces",
    "SELECT t.{0} FROM traces t WHERE t.trace_metadata['mlflow.gateway.endpointId'] = 'a'",
    "SELECT endpoint_id, {0} FROM gateway_usage",
    "SELECT endpoint_id FROM gateway_usage WHERE `{0}` IS NOT NULL",
    "SELECT request_id FROM system.ai_gateway.usage ORDER BY {0}",
    "SELECT {0} FROM trace_unified",
    "SELECT u.{0} FROM trace_unified u WHERE u.trace_metadata['mlflow.trace.session'] = 'a'",
    "SELECT trace_metadata['mlflow.trace.tokenUsage'] FROM a.b.c_trace_metadata ORDER BY {0}",
    "SELECT {0} FROM traces VERSION AS OF 1",
    "SELECT count(*) FROM traces a JOIN gateway_usage b USING ({0})",
)


@pytest.mark.parametrize("name", ["all", "some"])
def test_a_caller_who_knows_a_columns_name_learns_nothing(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    use(lakes[name], monkeypatch)
    for number, probe in enumerate(PROBES):
        workspaces = None if number % 2 == 0 or "VERSION" in probe else READABLE
        column = COLUMNS[KEYS[number % len(KEYS)]]
        told = error_of(probe.format(column), workspaces).lower()
        unknown = error_of(probe.format(UNKNOWN), workspaces).lower()
        short, nothing = (each.removeprefix("inner_") for each in (column, UNKNOWN))
        assert told.replace(short, nothing) == unknown, probe
    for view in (VIEW, f"mlflow.{VIEW}", f"system.mlflow.{VIEW}"):
        sql = f"SELECT (SELECT max(endpoint_id) FROM gateway_usage) FROM {view}"
        other = error_of(sql.replace("inner_", "other_"))
        assert error_of(sql) == other.replace("other_", "inner_")


SHOWING = (
    "SELECT * FROM traces",
    "SELECT * FROM gateway_usage",
    "SELECT g FROM gateway_usage g",
    "SELECT * FROM traces JOIN gateway_usage USING (trace_id)",
    "SELECT * FROM system.serving.endpoint_usage",
    "DESCRIBE system.mlflow.traces",
    "SHOW COLUMNS IN system.mlflow.traces",
    "SELECT * FROM system.information_schema.columns",
    "SELECT CAST(request_type AS INT) FROM gateway_usage",
    "SELECT 1 FROM gateway_usage WHERE caller",
    "SELECT endpoint_id + user_name FROM gateway_usage",
    "SELECT sum(api_type) FROM system.ai_gateway.usage",
    "SELECT date_add(requester, 2) FROM system.ai_gateway.usage",
)


@pytest.mark.parametrize("name", ["all", "some"])
def test_neither_answer_nor_error_shows_a_column(
    lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    use(lakes[name], monkeypatch)
    for sql in SHOWING:
        for workspaces in (None, READABLE):
            try:
                told = json.dumps(asked(sql, workspaces))
            except errors.InvalidParameterValue as refused:
                told = str(refused)
            assert "inner_" not in told.lower(), sql
