"""Assessments that a query takes out of ``trace_unified`` with explode(): the same as in the lists
of the view, however the query is run."""

from __future__ import annotations

from typing import Any

import pytest

from mltables import statement_check
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, start, tell

__all__ = ["tables"]

SOURCE = {"source_type": "HUMAN", "source_id": "ann"}
ERROR = {"error_code": "TIMEOUT", "error_message": "too late"}
GIVEN: dict[int, list[dict[str, Any]]] = {
    1: [
        {"feedback": {"value": True}, "rationale": "because", "metadata": {"a": "b"}},
        {"feedback": {"error": ERROR}},
        {"expectation": {"value": "42"}, "span_id": f"{1:016x}"},
    ],
    2: [],
    3: [{"feedback": {"value": "yes"}}],
}
"""The assessments of each trace."""
COUNT = sum(map(len, GIVEN.values()))
FIELDS = (
    *("assessment_id", "trace_id", "assessment_name", "source", "create_time", "last_update_time"),
    *("expectation", "feedback", "rationale", "metadata", "span_id", "overrides", "valid"),
)
FORMS = (
    "FROM trace_unified LATERAL VIEW explode(assessments) t AS a",
    "FROM system.mlflow.trace_unified u LATERAL VIEW explode(u.assessments) t AS a",
    "FROM trace_unified u LATERAL VIEW explode(U.Assessments) T AS A",
    "FROM trace_unified, LATERAL explode(assessments) AS t(a)",
    "FROM (SELECT trace_id, explode(assessments) AS a FROM trace_unified)",
    "FROM (SELECT u.trace_id, explode(u.assessments) AS a FROM trace_unified u) x",
)


@pytest.fixture
def assessed(store: Store, tables: Tables) -> Tables:
    experiment = store.api.new_experiment("agents")
    for number, given in GIVEN.items():
        trace = f"{number:032x}"
        assert export(experiment, [span(trace, 1)]).status == 200
        body = start(experiment, f"tr-{trace}", request_time=f"2023-11-1{number}T22:13:20Z")
        tell("POST", "3.0/traces", body)
        for position, fields in enumerate(given):
            assessment = {"assessment_name": f"a{position}", "source": SOURCE, **fields}
            tell("POST", f"3.0/traces/tr-{trace}/assessments", {"assessment": assessment})
    tables.follow()
    return tables


def _same(rows: Any, expected: Any) -> bool:
    return sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_exploded_assessments_are_those_of_the_lists(assessed: Tables) -> None:
    lists = assessed.ask("SELECT trace_id, assessments FROM trace_unified")["rows"]
    expected = [[trace, assessment] for trace, listed in lists for assessment in listed]
    assert len(expected) == COUNT
    feedback = [assessment["feedback"] for _, assessment in expected]
    assert any(each["error"] for each in feedback if each)
    names = ", ".join(f"a.{name}" for name in FIELDS)
    for form in FORMS:
        assert _same(assessed.ask(f"SELECT trace_id, a {form}")["rows"], expected), form
        rows = assessed.ask(f"SELECT trace_id, {names} {form}")["rows"]
        given = [[trace, *(assessment[name] for name in FIELDS)] for trace, assessment in expected]
        assert _same(rows, given), form


def test_conditions_and_aggregates_count_the_same_assessments(assessed: Tables) -> None:
    for form in FORMS:
        counts = assessed.ask(
            "SELECT a.source.source_type, count(*), count(a.feedback.value), "
            "sum(CASE WHEN a.feedback.value = 'true' THEN 1 ELSE 0 END), "
            f"count(a.feedback.error.error_code), count(a.expectation) {form} "
            "WHERE a.assessment_name <> 'x' GROUP BY 1"
        )["rows"]
        assert counts == [["HUMAN", COUNT, 2, 1, 1, 1]], form
    outer = "SELECT count(*), count(a.assessment_id) FROM trace_unified LATERAL VIEW OUTER "
    assert assessed.ask(f"{outer} explode(assessments) t AS a")["rows"] == [[COUNT + 1, COUNT]]
    both = (
        "SELECT s.span_id, a.assessment_name FROM trace_unified "
        "LATERAL VIEW explode(spans) t AS s LATERAL VIEW explode(assessments) v AS a "
        "WHERE a.span_id = s.span_id"
    )
    assert assessed.ask(both)["rows"] == [[f"{1:016x}", "a2"]]


def test_a_star_shows_the_columns_of_the_view(assessed: Tables) -> None:
    answer = assessed.ask("SELECT * FROM trace_unified LATERAL VIEW explode(assessments) t AS a")
    assert answer["columns"][-1] == "a"
    assert not [name for name in answer["columns"] if name.startswith("inner")]
    assert len(answer["rows"]) == COUNT


def test_assessments_of_other_workspaces_are_not_there(assessed: Tables) -> None:
    statements = [
        f"SELECT {counted}"
        for form in FORMS
        for counted in (
            f"count(*) {form}",
            f"count(a.assessment_id) {form}",
            f"count(*) {form} WHERE CAST(a.span_id AS INT) = 1 OR length(a.span_id) / 0 = 1",
        )
    ]
    for readable in ([], ["team"], ["Default"], ["%"]):
        assert assessed.counts(statements, readable) == [0] * len(statements)


def test_the_lists_are_not_built_and_only_named_fields_are_read() -> None:
    passed = statement_check.translate(
        "SELECT a.feedback.value FROM trace_unified LATERAL VIEW explode(assessments) t AS a "
        "WHERE request_time >= '2026-11-01' AND trace_id = 'tr-1' AND state = 'OK'"
    )
    assert "unnest" not in passed.sql
    assert "assessments" not in passed.reads["trace_unified"]
    read = {"experiment_id", "trace_id", "request_time", "assessment_type", "value"}
    assert passed.reads["assessments"] == read | {"error_code", "error_message"}
    for each in (*passed.bounds["assessments"], *passed.bounds["traces"]):
        assert {bound.column for bound in each} == {"request_time", "trace_id"}
