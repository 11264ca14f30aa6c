"""The view ``trace_unified``: Databricks' columns, and queries as Databricks publishes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import START, export, span, start, tell

__all__ = ["tables"]

ASKED, ANSWERED = f"{21:032x}", f"{22:032x}"


@pytest.fixture
def traced(store: Store, tables: Tables) -> Tables:
    """Two traces: one with spans and assessments, one that has only been started."""
    experiment = store.api.new_experiment("agents")
    root = span(ANSWERED, 1, end=40, mlflow__spanType="AGENT")
    root["attributes"] += span(
        ANSWERED, 1, mlflow__spanInputs='{"q": "why"}', mlflow__spanOutputs='"because"'
    )["attributes"]
    tool = span(ANSWERED, 2, 1, start=5, end=25, mlflow__spanType="TOOL")
    tool["status"] = {"code": 2, "message": "timeout"}
    llm = span(ANSWERED, 3, 1, start=26, end=39, mlflow__spanType="LLM")
    assert export(experiment, [tool, llm, root]).status == 200
    info = {"request_time": "2023-11-14T22:13:20Z", "execution_duration": "0.040s"}
    usage = {"mlflow.trace.tokenUsage": json.dumps({"input_tokens": 7, "output_tokens": 5})}
    for trace, state in ((ANSWERED, "ERROR"), (ASKED, "OK")):
        body = start(
            experiment,
            f"tr-{trace}",
            **info,
            state=state,
            client_request_id=f"c-{state}",
            request_preview="shortened",
            trace_metadata=usage,
        )
        tell("POST", "3.0/traces", body)
    for name, kind, value in (
        ("correct", "feedback", False),
        ("expected", "expectation", "therefore"),
    ):
        assessment = {
            "assessment_name": name,
            "source": {"source_type": "HUMAN", "source_id": "ann"},
            "rationale": "looked",
            kind: {"value": value},
        }
        tell("POST", f"3.0/traces/tr-{ANSWERED}/assessments", {"assessment": assessment})
    tables.follow()
    return tables


def _rows(tables: Tables, sql: str, workspaces: list[str] | None = None) -> Any:
    return tables.ask(sql, workspaces)["rows"]


def test_a_trace_is_one_row_with_its_spans_and_assessments(traced: Tables) -> None:
    answer = traced.ask("SELECT * FROM system.mlflow.trace_unified ORDER BY trace_id")
    unanswered, answered = (
        dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]
    )
    assert (unanswered["spans"], unanswered["assessments"]) == ([], [])
    assert (unanswered["request"], unanswered["response"]) == ("shortened", None)
    assert answered["request"] == '{"q": "why"}'
    assert answered["response"] == "because"
    assert (answered["client_request_id"], answered["state"]) == ("c-ERROR", "ERROR")
    assert [item["span_id"] for item in answered["spans"]] == [f"{n:016x}" for n in (1, 2, 3)]
    assert answered["spans"][1]["status"] == {"message": "timeout", "code": "STATUS_CODE_ERROR"}
    assert answered["spans"][1]["start_time_unix_nano"] == START + 5_000_000
    correct, expected = sorted(
        answered["assessments"], key=lambda assessment: str(assessment["assessment_name"])
    )
    assert correct["feedback"] == {"value": "false", "error": None}
    assert (correct["expectation"], correct["rationale"]) == (None, "looked")
    assert correct["source"] == {"source_id": "ann", "source_type": "HUMAN"}
    assert (expected["expectation"], expected["feedback"]) == ({"value": '"therefore"'}, None)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM system.mlflow.trace_unified", [[2]]),
        (
            "SELECT state, COUNT(*) AS n, AVG(execution_duration_ms) AS ms "
            "FROM system.mlflow.trace_unified WHERE request_time >= '2023-11-14' "
            "AND request_time < '2023-11-15' GROUP BY state ORDER BY state",
            [["ERROR", 1, 40.0], ["OK", 1, 40.0]],
        ),
        ("SELECT count(*) FROM trace_unified WHERE request_time >= '2024-01-01'", [[0]]),
        (
            "SELECT span.name, (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6 AS ms "
            "FROM (SELECT explode(spans) AS span FROM system.mlflow.trace_unified) "
            "WHERE span.status.code = 'STATUS_CODE_ERROR'",
            [["span 2", 20.0]],
        ),
        (
            "SELECT s.attributes['mlflow.spanType'] AS kind, count(*) "
            "FROM system.mlflow.trace_unified LATERAL VIEW explode(spans) t AS s "
            "GROUP BY 1 ORDER BY 1",
            [["AGENT", 1], ["LLM", 1], ["TOOL", 1]],
        ),
        (
            "SELECT a.assessment_name, a.feedback.value FROM "
            "(SELECT explode(assessments) AS a FROM system.mlflow.trace_unified) "
            "WHERE a.feedback IS NOT NULL",
            [["correct", "false"]],
        ),
        (
            "SELECT trace_id, size(spans) FROM system.mlflow.trace_unified "
            "WHERE size(filter(spans, s -> s.status.code = 'STATUS_CODE_ERROR')) > 0",
            [[f"tr-{ANSWERED}", 3]],
        ),
        (
            "SELECT u.trace_id, t.input_tokens FROM system.mlflow.trace_unified u "
            "JOIN system.mlflow.traces t USING (trace_id) WHERE t.request_time < '2024-01-01' "
            "AND u.response = 'because'",
            [[f"tr-{ANSWERED}", 7]],
        ),
        (
            "SELECT s.name, s.status.message AS status_message, "
            "ROUND((s.end_time_unix_nano - s.start_time_unix_nano) / 1000000.0, 3) AS duration_ms "
            "FROM system.mlflow.spans s WHERE s.parent_span_id IS NOT NULL "
            "ORDER BY s.start_time_unix_nano ASC",
            [["span 2", "timeout", 20.0], ["span 3", "", 13.0]],
        ),
    ],
)
def test_queries_have_the_answers_of_the_traces(traced: Tables, sql: str, rows: Any) -> None:
    assert _rows(traced, sql) == rows


@pytest.mark.parametrize("readable", [[], ["team"], ["Default"], ["%"]])
def test_the_view_shows_no_row_of_another_workspace(traced: Tables, readable: list[str]) -> None:
    statements = (
        "SELECT count(*) FROM system.mlflow.trace_unified",
        "SELECT count(*) FROM trace_unified WHERE CAST(request AS INT) = 1",
        f"SELECT count(*) FROM trace_unified WHERE trace_id = 'tr-{ANSWERED}' "
        "AND 1 / size(spans) > 0",
        "SELECT count(*) FROM (SELECT explode(spans) FROM trace_unified)",
        "SELECT count(*) FROM (SELECT explode(assessments) FROM trace_unified)",
    )
    assert traced.counts(statements, readable) == [0] * len(statements)
    assert _rows(traced, "SELECT count(*) FROM trace_unified", ["default"]) == [[2]]
