"""Values of the lists of spans and assessments are those of the lists, also where the lists are
not built."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from mlcore.system_tables import storage
from mltables import statement_check
from mltables.aggregated_lists import VALUE
from sql import execution
from tests.contract.conftest import EXAMPLES
from tests.contract.span_lakes import READABLE, lakes
from tests.contract.translated_statements import answer_of

__all__ = ["lakes"]

pytestmark = pytest.mark.timeout(600)

STATEMENTS = 20 if EXAMPLES > 1 else 8
CONDITIONS = {
    "spans": (
        "x.name = 'name 1'",
        "x.status.code <> 'STATUS_CODE_OK' OR x.kind IS NULL",
        "x.end_time_unix_nano > 5",
        "x.attributes['mlflow.spanType'] = 'TOOL'",
        "TRY_CAST(x.attributes['own'] AS INT) > 5 OR x.attributes['user.id'] IS NULL",
        "element_at(x.attributes, 'session.id') IN ('a', 'A')",
        "exists(map_keys(x.attributes), k -> k LIKE 'mlflow%')",
        "get(x.events, 0).name IS NULL",
        "get(x.events, 0).name = 'exception' OR exists(x.events, e -> e.name LIKE 're%')",
        "get(X.EVENTS, 0).name = 'retried' AND x.name = 'name 1'",
        "try_element_at(x.events, 2).name <> 'a \"b\" \\\\ é\\n'",
        "exists(x.events, e -> e.name = 'a \"b\" \\\\ é\\n')",
        "NOT exists(x.events, e -> e.name = '')",
        "forall(x.events, e -> e.name <> 'retried')",
        "exists(x.events, e -> e.name = 'retried' AND e.time_unix_nano > 0)",
        "exists(x.events, e -> e.name = 'retried') OR x.name = 'name 1'",
        "coalesce(get(x.events, 0).name = 'retried', true)",
        "x.end_time_unix_nano - x.start_time_unix_nano >= 0",
        "x.flags IS NULL",
        "CASE WHEN x.end_time_unix_nano IS NOT NULL THEN x.name > 'name 0' END",
    ),
    "assessments": (
        "x.assessment_name = 'fine'",
        "x.feedback.value = 'yes'",
        "x.feedback.error.error_code IS NOT NULL",
        "x.expectation.serialized_value.value IS NULL AND x.rationale <> ''",
        "x.source.source_type = 'HUMAN'",
        "CAST(x.valid AS BOOLEAN)",
    ),
}
FIELDS = {
    "spans": ("name", "span_id", "status.code", "end_time_unix_nano", "attributes", "events"),
    "assessments": ("feedback.value", "assessment_id", "source", "rationale", "metadata"),
}
SOURCES = (
    ("trace_unified", ""),
    ("trace_unified u", "u."),
    ("mlflow.trace_unified U", ""),
    ("trace_unified u LATERAL VIEW explode(map_keys(tags)) t AS k", ""),
    ("trace_unified u LATERAL VIEW explode(assessments) t AS a", "u."),
    ("trace_unified u LATERAL VIEW OUTER explode(spans) t AS s", ""),
    ("trace_unified u LEFT JOIN experiments_latest e ON e.experiment_id = u.experiment_id", "u."),
    ("trace_unified u JOIN (SELECT trace_id AS t FROM traces) o ON o.t = u.trace_id", "u."),
)


class Values:
    """Random values of lists that need no list."""

    def __init__(self, rng: random.Random, of: str) -> None:
        self.rng, self.of = rng, of

    def number(self) -> str:
        name = self.rng.choice(("spans", "assessments"))
        size = self.rng.choice(("size", "cardinality", "array_size"))
        return self.rng.choice((f"{size}({self.of}{name})", f"{size}({self._filtered(name)})"))

    def truth(self) -> str:
        name, call = (
            self.rng.choice(("spans", "assessments")),
            self.rng.choice(("exists", "forall")),
        )
        return f"{call}({self.of}{name}, {self._condition(name)})"

    def field(self) -> str:
        name = self.rng.choice(("spans", "assessments"))
        listed = self.rng.choice((f"{self.of}{name}", self._filtered(name)))
        first = self.rng.choice((f"try_element_at({listed}, 1)", f"get({listed}, 0)"))
        return f"{first}.{self.rng.choice(FIELDS[name])}"

    def _filtered(self, name: str) -> str:
        return f"filter({self.of}{name}, {self._condition(name)})"

    def _condition(self, name: str) -> str:
        return f"x -> {self.rng.choice(CONDITIONS[name])}"


def _statement(rng: random.Random) -> str:
    source, of = rng.choice(SOURCES)
    values = Values(rng, of)
    where = rng.choice(
        ("", f" WHERE {values.truth()}", f" WHERE {of}state = 'OK' AND {values.number()} < 3",
         f" WHERE NOT {values.truth()} AND {of}request_time >= '2026-01-02'")
    )  # fmt: skip
    return rng.choice(
        (
            f"SELECT {of}trace_id, {values.number()}, {values.truth()}, {values.field()} "
            f"FROM {source}{where}",
            f"SELECT {values.truth()} AS v, {values.truth()} AS w FROM {source}{where}",
            f"SELECT {values.number()}, count(*) FROM {source}{where} GROUP BY 1",
            f"SELECT sum({values.number()}), max({values.number()}) FROM {source}{where}",
            f"SELECT {of}trace_id FROM {source}{where} ORDER BY {values.number()}, {of}trace_id",
            f"SELECT count(*) FROM (SELECT {values.field()} AS f FROM {source}{where}) "
            "WHERE f IS NULL",
            f"WITH c AS (SELECT {of}trace_id AS t, {values.number()} AS n FROM {source}{where}) "
            "SELECT a.t, b.n FROM c a JOIN c b USING (t)",
        )
    )


BUILT = (
    "SELECT * FROM (SELECT size(spans) FROM trace_unified)",
    "SELECT size(spans), * FROM trace_unified",
    "SELECT try_element_at(spans, 1) FROM trace_unified",
    "SELECT try_element_at(spans, 2).name, get(spans, 1).name FROM trace_unified",
    "SELECT element_at(spans, 1).name FROM trace_unified WHERE trace_id = 'none'",
    "SELECT size(transform(spans, s -> s.name)) FROM trace_unified",
    "SELECT exists(spans, s -> s IS NULL) FROM trace_unified",
    "SELECT exists(spans, s -> s.name = trace_id) FROM trace_unified",
    "SELECT size(filter(spans, (s, i) -> i > 1)) FROM trace_unified",
    "SELECT exists(spans, s -> exists(array(1), s -> s = 1)) FROM trace_unified",
    "SELECT transform(array(1), n -> size(spans)) FROM trace_unified",
    "SELECT sum(size(filter(spans, s -> rand() < 0.5))) FROM trace_unified",
    "SELECT size(spans) FROM (SELECT spans FROM trace_unified)",
    "SELECT size(spans) FROM trace_unified u RIGHT JOIN (SELECT 'none' AS t) o ON o.t = u.trace_id",
    "SELECT size(u.spans) FROM trace_unified u FULL JOIN (SELECT 'x' AS t) o ON o.t = u.trace_id",
    "SELECT array(1) AS spans, size(spans) FROM trace_unified",
    "SELECT size(spans) FROM (SELECT array(1, 2) AS spans) u",
    "SELECT size(map_keys(tags)) FROM trace_unified",
    "SELECT (SELECT max(size(u.spans)) FROM traces) FROM trace_unified u",
)
"""Statements with lists that are used in other ways."""


@pytest.fixture(autouse=True)
def lake(lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(storage.FOLDER, str(lakes["some"]))
    storage.store.cache_clear()
    yield
    storage.store.cache_clear()


def _answer(sql: str, workspaces: list[str] | None, folder: Path, *, as_written: bool) -> str:
    statement = statement_check.translate(sql, from_maps=as_written)
    assert not (as_written and VALUE in statement.sql)
    return answer_of(statement, workspaces, folder)


@pytest.mark.parametrize("seed", range(2))
def test_a_value_is_that_of_the_list(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    empty = 0
    for number in range(STATEMENTS):
        sql = _statement(rng)
        statement = statement_check.translate(sql)
        assert VALUE in statement.sql, sql
        read = statement.reads.get("trace_unified", frozenset())
        assert not {"spans", "assessments"} & read, sql
        workspaces = rng.choice((None, READABLE, []))
        built = _answer(sql, workspaces, tmp_path / f"{number}-built", as_written=True)
        value = _answer(sql, workspaces, tmp_path / f"{number}-value", as_written=False)
        assert value == built, sql
        assert workspaces is None or "SECRET" not in value
        empty += value.endswith("[])")
    assert empty <= STATEMENTS / 2


@pytest.mark.parametrize("sql", BUILT)
def test_a_list_that_may_be_used_in_another_way_is_built(sql: str) -> None:
    assert VALUE not in statement_check.translate(sql).sql


def test_a_condition_on_a_span_of_an_outer_query_bounds_no_list() -> None:
    sql = (
        "SELECT o.span_id FROM spans o WHERE o.parent_span_id IS NULL AND EXISTS (SELECT 1 FROM "
        "trace_unified WHERE parent_span_id IS NULL AND size(spans) > 1)"
    )
    assert () in statement_check.translate(sql).bounds["spans"]


def _error(sql: str) -> str:
    with pytest.raises(errors.InvalidParameterValue) as refused:
        execution.run_query({"sql": sql, "parameters": {}, "workspaces": None})
    return str(refused.value)


def test_an_error_is_that_of_the_list() -> None:
    sql = "SELECT exists(spans, s -> CAST(s.name AS INT) = 1) FROM trace_unified"
    assert "CAST_INVALID_INPUT" in _error(sql)
    unknown = _error("SELECT size(filter(spans, s -> s.nothing = 1)) FROM trace_unified")
    assert "nothing" in unknown
    assert "inner_" not in unknown
    for name in (f"{VALUE}0", "inner_rows_of_spans", "inner_elements"):
        told = _error(f"SELECT {name}, size(spans) FROM trace_unified")
        assert told.replace(name.removeprefix("inner_"), "x") == _error(
            "SELECT x, size(spans) FROM trace_unified"
        )


def test_rows_that_error_are_not_seen_if_a_condition_drops_their_trace() -> None:
    """The aggregate is computed before the condition on the trace. The statement is then run again
    as it is written."""
    sql = (
        "SELECT trace_id, exists(spans, s -> CAST(s.name AS INT) = 1) FROM trace_unified "
        "WHERE state = 'NONE'"
    )
    answer: Any = execution.run_query({"sql": sql, "parameters": {}, "workspaces": None})
    assert answer["rows"] == []
