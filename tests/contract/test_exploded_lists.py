"""Spans that a query takes out of ``trace_unified`` with explode(): the same as in the lists of the
view, however the query is run."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mltables import statement_check
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, start, tell

__all__ = ["tables"]

DAYS = {number: f"2023-11-{14 + number}T22:13:20Z" for number in range(4)}
SPANS = {0: 3, 1: 1, 2: 0, 3: 4}
"""How many spans each trace has."""


def _id(number: int) -> str:
    return f"tr-{number + 31:032x}"


@pytest.fixture
def traced(store: Store, tables: Tables) -> Tables:
    """Four traces in two experiments, of a day each; one has no span."""
    experiments = [store.api.new_experiment(name) for name in ("agents", "others")]
    for number, count in SPANS.items():
        experiment = experiments[number % 2]
        trace = f"{number + 31:032x}"
        exported = [
            span(
                trace,
                index,
                1 if index > 1 else 0,
                start=index,
                end=index * 10,
                mlflow__spanType=kind,
            )
            for index, kind in zip(range(1, count + 1), itertools.cycle(("AGENT", "TOOL")))
        ]
        if exported:
            assert export(experiment, exported).status == 200
        body = start(experiment, _id(number), request_time=DAYS[number], state="OK")
        tell("POST", "3.0/traces", body)
    tables.follow()
    return tables


def _lists(traced: Tables, where: str = "true") -> list[tuple[str, dict[str, Any]]]:
    """The spans in the view's lists, each with the id of its trace."""
    rows = traced.ask(f"SELECT trace_id, spans FROM trace_unified WHERE {where}")["rows"]
    return [(trace, span) for trace, spans in rows for span in spans]


def _kind(span: dict[str, Any]) -> str:
    return str(dict(span["attributes"])["mlflow.spanType"])


def _same(rows: Any, expected: Any) -> bool:
    return sorted(map(repr, rows)) == sorted(map(repr, map(list, expected)))


FORMS = (
    "FROM trace_unified LATERAL VIEW explode(spans) t AS s",
    "FROM system.mlflow.trace_unified u LATERAL VIEW explode(u.spans) t AS s",
    "FROM trace_unified u LATERAL VIEW explode(U.Spans) T AS S",
    "FROM trace_unified, LATERAL explode(spans) AS t(s)",
    "FROM (SELECT trace_id, request_time, explode(spans) AS s FROM trace_unified)",
    "FROM (SELECT u.trace_id, request_time, explode(u.spans) AS s FROM trace_unified u) x",
)


def test_exploded_spans_are_those_of_the_lists(traced: Tables) -> None:
    for form in FORMS:
        _assert_spans(traced, form)


def _assert_spans(traced: Tables, form: str) -> None:
    answer = traced.ask(
        "SELECT trace_id, s.span_id, s.attributes['mlflow.spanType'], s.status.code, "
        f"s.end_time_unix_nano - s.start_time_unix_nano {form}"
    )
    expected = [
        (
            trace,
            exploded["span_id"],
            _kind(exploded),
            exploded["status"]["code"],
            exploded["end_time_unix_nano"] - exploded["start_time_unix_nano"],
        )
        for trace, exploded in _lists(traced)
    ]
    assert len(expected) == sum(SPANS.values())
    assert _same(answer["rows"], expected)
    whole = traced.ask(f"SELECT trace_id, s {form}")["rows"]
    assert _same(whole, _lists(traced)), "a span as a value has all fields"


def test_conditions_and_aggregates_count_the_same_spans(traced: Tables) -> None:
    for form in FORMS:
        _assert_counts(traced, form)


def _assert_counts(traced: Tables, form: str) -> None:
    spans = _lists(traced, f"request_time >= '{DAYS[1]}'")
    answer = traced.ask(
        "SELECT s.attributes['mlflow.spanType'] AS kind, count(*), min(s.span_id) "
        f"{form} WHERE request_time >= '{DAYS[1]}' AND s.span_id <> 'x' GROUP BY 1"
    )
    kinds = {_kind(exploded) for _, exploded in spans}
    assert _same(
        answer["rows"],
        [
            (
                kind,
                len([1 for _, exploded in spans if _kind(exploded) == kind]),
                min(exploded["span_id"] for _, exploded in spans if _kind(exploded) == kind),
            )
            for kind in kinds
        ],
    )


OTHERS: tuple[tuple[str, Any], ...] = (
    (
        "SELECT trace_id, s.span_id IS NULL FROM trace_unified "
        "LATERAL VIEW OUTER explode(spans) t AS s GROUP BY ALL",
        [[_id(number), count == 0] for number, count in SPANS.items()],
    ),
    (
        "SELECT a.span_id, b.span_id FROM trace_unified LATERAL VIEW explode(spans) t AS a "
        f"LATERAL VIEW explode(spans) v AS b WHERE trace_id = '{_id(0)}' "
        "AND b.parent_span_id = a.span_id",
        [[f"{1:016x}", f"{number:016x}"] for number in (2, 3)],
    ),
    (
        "SELECT e.name, count(*) FROM trace_unified u JOIN experiments_latest e "
        "USING (experiment_id) LATERAL VIEW explode(u.spans) t AS s GROUP BY e.name",
        [["agents", 3], ["others", 5]],
    ),
    (
        "SELECT trace_id, pos, s.span_id FROM trace_unified "
        f"LATERAL VIEW posexplode(spans) t AS pos, s WHERE trace_id = '{_id(0)}'",
        [[_id(0), number, f"{number + 1:016x}"] for number in range(3)],
    ),
    (
        "WITH c AS (SELECT explode(spans) AS s FROM trace_unified) "
        "SELECT count(*) FROM c a JOIN c b ON a.s.span_id = b.s.parent_span_id "
        "AND a.s.trace_id = b.s.trace_id",
        [[5]],
    ),
    (
        "WITH c (renamed) AS (SELECT explode(spans) AS s FROM trace_unified) "
        "SELECT count(DISTINCT renamed.span_id) FROM c",
        [[4]],
    ),
    ("SELECT count(DISTINCT s) FROM (SELECT explode(spans) AS s FROM trace_unified)", [[8]]),
    (
        "SELECT count(*) FROM (SELECT explode(spans) AS s FROM trace_unified "
        "UNION ALL SELECT explode(spans) AS other FROM trace_unified) WHERE s.span_id <> 'x'",
        [[16]],
    ),
    (
        "SELECT count(*) FROM traces WHERE trace_id IN "
        "(SELECT s.trace_id FROM trace_unified LATERAL VIEW explode(spans) t AS s)",
        [[3]],
    ),
    (
        "SELECT size(spans), count(*) FROM trace_unified LATERAL VIEW explode(spans) t AS s "
        "GROUP BY size(spans)",
        [[3, 3], [1, 1], [4, 4]],
    ),
    (
        "SELECT s FROM (SELECT explode(spans) AS s FROM trace_unified ORDER BY trace_id) "
        "WHERE s.span_id = 'none'",
        [],
    ),
)


def test_other_forms_have_their_answers(traced: Tables) -> None:
    for sql, rows in OTHERS:
        assert _same(traced.ask(sql)["rows"], rows), sql
        assert _same(traced.ask(sql, ["default"])["rows"], rows), sql


def test_a_star_shows_the_columns_of_the_view(traced: Tables) -> None:
    answer = traced.ask("SELECT * FROM trace_unified LATERAL VIEW explode(spans) t AS s")
    assert answer["columns"][-1] == "s"
    assert not [name for name in answer["columns"] if name.startswith("inner")]
    assert len(answer["rows"]) == sum(SPANS.values())


def test_spans_of_other_workspaces_are_not_there(traced: Tables) -> None:
    statements = [
        f"SELECT {counted}"
        for form in FORMS
        for counted in (
            f"count(*) {form}",
            f"count(s.span_id) {form}",
            f"count(*) {form} WHERE CAST(s.name AS INT) = 1 OR 1 / length(s.name) > 0",
        )
    ]
    for readable in ([], ["team"], ["Default"], ["%"]):
        assert traced.counts(statements, readable) == [0] * len(statements)


def test_the_lists_are_not_built_and_the_days_bound_the_spans() -> None:
    passed = statement_check.translate(
        "SELECT s.name FROM trace_unified LATERAL VIEW explode(spans) t AS s "
        "WHERE request_time >= '2026-11-01' AND trace_id = 'tr-1' AND state = 'OK'"
    )
    assert "unnest" not in passed.sql
    assert "spans" not in passed.reads["trace_unified"]
    assert "attributes" not in passed.reads["spans"]
    of_days = {"request_time", "trace_id"}
    for each in (*passed.bounds["spans"], *passed.bounds["traces"]):
        columns = {bound.column for bound in each}
        # A view of roots reads the files alone that have roots.
        assert columns in (of_days, of_days | {"parent_span_id"})


@pytest.mark.parametrize("name", ["request_time", "trace_id", "experiment_id"])
def test_a_name_of_the_caller_that_hides_a_column_bounds_nothing(traced: Tables, name: str) -> None:
    """The names of exploded values are in scope beside those of the table."""
    passed = statement_check.translate(
        f"SELECT 1 FROM trace_unified LATERAL VIEW explode(array('2999-01-01')) t AS {name} "
        f"WHERE {name} >= '2998-01-01'"
    )
    assert not [bound for each in passed.bounds["traces"] for bound in each]
