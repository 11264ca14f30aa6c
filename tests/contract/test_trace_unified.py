"""The view ``trace_unified``: Databricks' columns, and queries as Databricks publishes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlcore.errors import InvalidParameterValue
from mltables import trace_view
from mltables.views import VIEWS
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
    assert correct["valid"] == "true"
    assert (correct["expectation"], correct["rationale"]) == (None, "looked")
    assert correct["source"] == {"source_id": "ann", "source_type": "HUMAN"}
    assert expected["expectation"] == {"value": "therefore", "serialized_value": None}
    assert expected["feedback"] is None
    absent = set(trace_view.ABSENT)
    assert all(item[name] is None for item in answered["spans"] for name in absent)


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


def test_the_last_failing_spans_of_many(store: Store, tables: Tables) -> None:
    """The engine's plan for a condition on a member of a struct with a limit failed from some ten
    rows on."""
    spans = [span(ANSWERED, number, start=number) for number in range(1, 61)]
    for failing in spans[9:19]:
        failing["status"] = {"code": 2, "message": "timeout"}
    assert export(store.api.new_experiment("many"), spans).status == 200
    tables.follow()
    for table in ("system.mlflow.spans", "c.s.x_otel_spans"):
        sql = (
            f"SELECT name, status.code, status.message FROM {table} "
            "WHERE status.code = 'STATUS_CODE_ERROR' ORDER BY time DESC LIMIT 2"
        )
        expected = [[f"span {number}", "STATUS_CODE_ERROR", "timeout"] for number in (19, 18)]
        for workspaces in (None, ["default"]):
            assert _rows(tables, sql, workspaces) == expected


@pytest.mark.parametrize("readable", [[], ["team"], ["Default"], ["%"]])
def test_the_view_shows_no_row_of_another_workspace(traced: Tables, readable: list[str]) -> None:
    statements = (
        "SELECT count(*) FROM system.mlflow.trace_unified",
        "SELECT count(*) FROM trace_unified WHERE CAST(request AS INT) = 1",
        f"SELECT count(*) FROM trace_unified WHERE trace_id = 'tr-{ANSWERED}' "
        "AND 1 / size(spans) > 0",
        "SELECT count(*) FROM (SELECT explode(spans) FROM trace_unified)",
        "SELECT count(*) FROM (SELECT explode(assessments) FROM trace_unified)",
        "SELECT count(*) FROM prod.agents.mlflow_experiment_trace_unified",
        "SELECT count(*) FROM team.x_trace_metadata WHERE 1 / size(assessments) > 0",
        "SELECT count(*) FROM (SELECT * FROM x_trace_metadata)",
        "SELECT count(*) FROM a.b.c_otel_spans WHERE attributes:`mlflow.spanInputs`:q = 'why'",
        "SELECT count(*) FROM (SELECT * FROM otel_spans)",
    )
    assert traced.counts(statements, readable) == [0] * len(statements)
    assert _rows(traced, "SELECT count(*) FROM trace_unified", ["default"]) == [[2]]


NAMES = (
    "system.mlflow.{}",
    "{}",
    "main.agents.mlflow_experiment_{}",
    "`my catalog`.`Agents`.`prod-1_{}`",
    "agents.x_{}",
    "MLFLOW_EXPERIMENT_{}",
)


def test_published_names_mean_the_view(traced: Tables) -> None:
    for view, count in (("trace_unified", 2), ("trace_metadata", 2), ("otel_spans", 3)):
        first, *others = (
            traced.ask(f"SELECT * FROM {name.format(view)} ORDER BY ALL") for name in NAMES
        )
        assert first["columns"] == list(VIEWS[view].columns)
        assert len(first["rows"]) == count
        assert all(other == first for other in others)


def test_a_published_name_may_qualify_columns(traced: Tables) -> None:
    sql = (
        "SELECT c.s.x_otel_spans.name, s.x_otel_spans.kind, x_otel_spans.span_id "
        "FROM c.s.x_otel_spans WHERE c.s.x_otel_spans.status.code = 'STATUS_CODE_ERROR'"
    )
    assert _rows(traced, sql) == [["span 2", "SPAN_KIND_INTERNAL", f"{2:016x}"]]


IN_STATEMENTS: list[tuple[str, Any]] = [
    # Unqualified columns of a join mean what they mean in Databricks, where otel_spans has no
    # request_time and trace_metadata has no state.
    (
        "SELECT DISTINCT request_time, state FROM c.s.x_trace_unified "
        "JOIN c.s.x_otel_spans USING (trace_id) JOIN c.s.x_trace_metadata USING (trace_id)",
        [["2023-11-14T22:13:20.000Z", "ERROR"]],
    ),
    (
        "SELECT date, service_name, flags, count(*) FROM c.s.x_otel_spans GROUP BY 1, 2, 3",
        [["2023-11-14", None, None, 3]],
    ),
    (
        "WITH x_otel_spans AS (SELECT 7 AS own) SELECT own FROM x_otel_spans",
        [[7]],
    ),
    (
        "SELECT a.assessment_name FROM c.s.x_trace_metadata "
        "LATERAL VIEW explode(assessments) AS a ORDER BY 1",
        [["correct"], ["expected"]],
    ),
    ("SELECT count(record_id), count(DISTINCT record_id) FROM otel_spans", [[3, 3]]),
]


def test_published_names_in_statements(traced: Tables) -> None:
    for sql, rows in IN_STATEMENTS:
        assert _rows(traced, sql) == rows, sql


PATHS: list[tuple[str, Any]] = [
    ("SELECT attributes:`mlflow.spanInputs`:q AS q FROM otel_spans ORDER BY q", "why"),
    ("SELECT attributes:['mlflow.spanInputs'].q::STRING FROM x_otel_spans ORDER BY 1", "why"),
    (
        "SELECT variant_get(attributes, '$[\"mlflow.spanInputs\"].q', 'string') AS q "
        "FROM spans ORDER BY q",
        "why",
    ),
    ("SELECT request:q FROM trace_unified ORDER BY 1", "why"),
    ("SELECT parse_json(request):q::string FROM trace_unified ORDER BY 1", "why"),
    (
        "SELECT trace_metadata['mlflow.trace.tokenUsage']:input_tokens::INT FROM trace_unified",
        7,
    ),
    (
        "SELECT try_variant_get(parse_json(request), '$.q', 'int') AS n FROM trace_unified",
        None,
    ),
    ("SELECT transform(array(request), r -> r:q)[0] AS q FROM trace_unified ORDER BY q", "why"),
    ("SELECT request:q.r AS q FROM trace_unified", None),
]


def test_paths_into_json(traced: Tables) -> None:
    for sql, expected in PATHS:
        *_, (last,) = _rows(traced, sql)
        assert last == expected, sql


def test_a_path_names_its_column(traced: Tables) -> None:
    sql = "SELECT request:q, request:a.`b c`::INT, request:a[0] FROM trace_unified"
    assert traced.ask(sql)["columns"][:2] == ["q", "b c"]


REFUSED = (
    "SELECT request:items[*].name FROM trace_unified",
    'SELECT request:`a"b` FROM trace_unified',
    "SELECT variant_get(request, state) FROM trace_unified",
    "SELECT variant_get(request, '$.q', 'no type') FROM trace_unified",
    "SELECT variant_get(request, 'q[', 'int') FROM trace_unified",
    "SELECT variant_get(request) FROM trace_unified",
    "SELECT parse_json(request) FROM trace_unified",
    "SELECT parse_json(request, 1):q FROM trace_unified",
    "SELECT count(*) FROM c.s.x_otel_logs",
    "SELECT count(*) FROM c.s.x_trace_unified.y",
    "SELECT count(*) FROM runs.x.runs_latest",
)


def test_what_has_no_meaning_is_refused(traced: Tables) -> None:
    for sql in REFUSED:
        with pytest.raises(InvalidParameterValue):
            traced.ask(sql)


EXPECTATIONS: tuple[tuple[Any, str | None], ...] = (
    ({"a": [1, "ü"]}, None),
    ([], None),
    (1.5, "1.5"),
    (True, "true"),
    ('{"a": 1}', '{"a": 1}'),
    ('say "ü"', 'say "ü"'),
    ("null", "null"),
)
"""Values of expectations, each with what Databricks has in ``expectation.value``."""


def test_an_expectation_is_text_or_serialized(traced: Tables) -> None:
    for position, (value, text) in enumerate(EXPECTATIONS):
        given: dict[str, Any] = {"value": value}
        if text is None:
            serialized = {"serialization_format": "JSON_FORMAT", "value": json.dumps(value)}
            given = {"serialized_value": serialized}
        body = {
            "assessment_name": str(position),
            "source": {"source_type": "CODE", "source_id": "x"},
            "expectation": given,
        }
        tell("POST", f"3.0/traces/tr-{ASKED}/assessments", {"assessment": body})
    traced.follow()
    exploded = _rows(
        traced,
        "SELECT a.assessment_name, a.expectation FROM trace_unified "
        f"LATERAL VIEW explode(assessments) AS a WHERE trace_id = 'tr-{ASKED}'",
    )
    ((listed,),) = _rows(
        traced, f"SELECT assessments FROM trace_metadata WHERE trace_id = 'tr-{ASKED}'"
    )
    found = dict(exploded)
    assert found == {item["assessment_name"]: item["expectation"] for item in listed}
    for position, (value, text) in enumerate(EXPECTATIONS):
        expectation = found[str(position)]
        assert expectation["value"] == text
        serialized_value = expectation["serialized_value"]
        assert (serialized_value is None) == (text is not None)
        if serialized_value is not None:
            assert serialized_value["serialization_format"] == "JSON_FORMAT"
            assert json.loads(serialized_value["value"]) == value
