# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""Traces: making them, what is assessed, how they are found."""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.entities import AssessmentError, AssessmentSource, Expectation, Feedback, SpanEvent

from .record import Record

UNKNOWN = "tr-" + "f" * 32
START = 1_700_000_000_000_000_000
FILTERS = (
    *("trace.name = 'trace 1'", "name LIKE 'trace%'", "trace.status = 'OK'", "status = 'ERROR'"),
    *("tags.t = 'v'", "tags.t IS NULL", "tag.t LIKE 'v%'", "timestamp > 0", "timestamp_ms < 5"),
    *("metadata.`mlflow.trace.session` = 's1'", "metadata.m = 'x'", "request_metadata.m != 'x'"),
    *(
        "span.name = 'child'",
        "span.type = 'LLM'",
        "span.content LIKE '%deep%'",
        "span.status = 'OK'",
    ),
    *("span.attributes.a = '1'", "span.attributes.a LIKE '%1%'", "feedback.good = 'true'"),
    *(
        "feedback.score > 1",
        "expectation.answer = '42'",
        "feedback.good IS NULL",
        "text LIKE '%deep%'",
    ),
    *("trace.text LIKE '%deep%'", "trace.text ILIKE '%DEEP%'", "run_id = 'x'", "request_id = 'x'"),
    *(
        "execution_time > 1",
        "execution_time_ms >= 0",
        "end_time > 0",
        "prompt = 'p/1'",
        "version = 1",
    ),
    *(
        "status IN ('OK', 'ERROR')",
        "name = 5",
        "foo.bar = 'x'",
        "timestamp = 'x'",
        "name RLIKE '^t'",
    ),
    *(
        "trace.status = 'OK' AND tags.t = 'v'",
        "status = 'OK' OR status = 'ERROR'",
        "span.foo = 'x'",
    ),
    *("client_request_id = 'x'", "issue.id = 'x'", "feedback.good != 'true'", "type = 'x'", "name"),
)
ORDERS = (
    *("timestamp", "timestamp_ms DESC", "trace.name", "status DESC", "tags.t"),
    *("metadata.m", "start time", "version", "foo.bar", "span.name", "feedback.good"),
)
VALUES: tuple[Any, ...] = (
    *(
        True,
        1,
        2.5,
        "text",
        "é☃",
        ["a", "b"],
        {"a": 1, "b": "x"},
        None,
        float("nan"),
        {"a": {"b": 1}},
    ),
)


def make(record: Record, client: MlflowClient, experiment: str) -> list[str]:
    do = record.do
    made: list[str] = []
    for number in range(6):
        root = do(
            *("start_trace", client.start_trace, f"trace {number}"),
            **{
                "inputs": {"q": f"deep {number}"},
                "attributes": {"a": number},
                "tags": {"t": "v" * number} if number % 2 else {},
                "experiment_id": experiment,
                "start_time_ns": START + number * 10**9,
            },
        )
        trace_id = root.trace_id
        made.append(trace_id)
        child = client.start_span(
            *("child" if number % 2 else "other", trace_id, root.span_id),
            span_type="LLM" if number % 3 else "TOOL",
            inputs=[{"role": "user", "content": "x"}],
            start_time_ns=START + number * 10**9 + 10**6,
        )
        child.add_event(SpanEvent("happened", START, {"k": "v"}))
        client.end_span(
            *(trace_id, child.span_id, {"deep": [1, None]}),
            status="ERROR" if number == 2 else "OK",
            end_time_ns=START + number * 10**9 + 2 * 10**6,
        )
        do(
            *("end_trace", client.end_trace, trace_id, {"out": number}),
            status="ERROR" if number == 2 else "OK",
            end_time_ns=START + number * 10**9 + (number + 1) * 10**7,
        )
    do("end_trace again", client.end_trace, made[0])
    do("end_span unknown", client.end_span, UNKNOWN, "f" * 16)
    for trace_id in (*made, UNKNOWN, "x"):
        do("get_trace", client.get_trace, trace_id)
    do("fluent", _fluent, experiment)
    return made


def _fluent(experiment: str) -> Any:
    mlflow.set_experiment(experiment_id=experiment)

    @mlflow.trace(name="outer", span_type="CHAIN", attributes={"k": "v"})
    def outer(x: int) -> int:
        with mlflow.start_span("inside") as span:
            span.set_inputs({"x": x})
            mlflow.update_current_trace(
                tags={"u": "1"}, metadata={"mlflow.trace.session": "s1", "m": "x"}
            )
        return x + 1

    outer(1)
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
    return {
        "tags": trace.info.tags,
        "metadata": sorted(trace.info.trace_metadata),
        "preview": [trace.info.request_preview, trace.info.response_preview],
        "spans": [
            (span.name, span.inputs, span.outputs, span.span_type) for span in trace.data.spans
        ],
    }


def change(record: Record, client: MlflowClient, trace_ids: list[str], run_id: str) -> None:
    do = record.do
    for trace_id in (trace_ids[0], UNKNOWN):
        for key, value in (
            ("k", "v"),
            ("k", "w"),
            ("é", "☃"),
            ("", "v"),
            ("k" * 251, "v"),
            ("n", 5),
        ):
            do(f"set_trace_tag {key[:4]}", client.set_trace_tag, trace_id, key, value)
        do("long tag", client.set_trace_tag, trace_id, "long", "x" * 9000)
        for key in ("k", "k", "missing", "long"):
            do(f"delete_trace_tag {key}", client.delete_trace_tag, trace_id, key)
    human = AssessmentSource("HUMAN", "ann")
    made = []
    for value in VALUES:
        feedback = do(
            *(f"log_feedback {value}", mlflow.log_feedback),
            **{"trace_id": trace_ids[1], "name": "good", "value": value, "source": human},
        )
        made.append(feedback)
        do(
            *(f"log_expectation {value}", mlflow.log_expectation),
            **{"trace_id": trace_ids[2], "name": "answer", "value": value, "metadata": {"a": "b"}},
        )
    error = AssessmentError("CODE", "it failed", "stack")
    on = {"trace_id": trace_ids[3], "name": "score"}
    do("feedback error", mlflow.log_feedback, **on, error=error)
    do("feedback both", mlflow.log_feedback, **on, value=3, rationale="why", metadata={"a": "b"})
    do("feedback nothing", mlflow.log_feedback, **on)
    do("feedback unknown", mlflow.log_feedback, trace_id=UNKNOWN, value=True)
    do("feedback span", mlflow.log_feedback, **on, value=1, span_id="f" * 16)
    do(
        "feedback source",
        mlflow.log_feedback,
        **on,
        value=1,
        source=AssessmentSource("LLM_JUDGE", "m"),
    )
    do("feedback name", mlflow.log_feedback, trace_id=trace_ids[3], name="", value=1)
    first_id = made[0].assessment_id
    for assessment_id in (first_id, "a-" + "f" * 32, "x"):
        of = {"trace_id": trace_ids[1], "assessment_id": assessment_id}
        do("get_assessment", mlflow.get_assessment, **of)
        do("update feedback", mlflow.update_assessment, **of, assessment=Feedback("good", False))
        do("update other", mlflow.update_assessment, **of, assessment=Expectation("x", 1))
        do("override", mlflow.override_feedback, **of, value=False, rationale="no", source=human)
        do("get after", mlflow.get_assessment, **of)
    do("trace with all", client.get_trace, trace_ids[1])
    do("delete_assessment", mlflow.delete_assessment, trace_ids[1], first_id)
    do("delete_assessment again", mlflow.delete_assessment, trace_ids[1], first_id)
    do("trace after", client.get_trace, trace_ids[1])
    do("trace expected", client.get_trace, trace_ids[2])
    do("trace failed", client.get_trace, trace_ids[3])
    for ids in (trace_ids[:2], trace_ids[:2], [], [UNKNOWN], trace_ids[:1] * 101):
        do(f"link_traces {len(ids)}", client.link_traces_to_run, ids, run_id)
    do("link_traces nowhere", client.link_traces_to_run, trace_ids[:1], "f" * 32)
    do("unlink", client.unlink_traces_from_run, trace_ids[:1], run_id)


def search(record: Record, client: MlflowClient, experiment: str, run_id: str) -> None:
    do = record.do
    for text in FILTERS:
        for spans in (True, False) if text.startswith("trace") else (False,):
            named = {"filter_string": text, "include_spans": spans}
            do(f"search_traces {text} {spans}", client.search_traces, [experiment], **named)
    for order in ORDERS:
        named = {"order_by": [order], "include_spans": False}
        do(f"search_traces by {order}", client.search_traces, [experiment], **named)
    for most in (1, 3, 0, -1, 501):
        named = {"max_results": most, "include_spans": False}
        do(f"search_traces {most}", client.search_traces, [experiment], **named)
    for ids in ([], ["98765432"], [experiment, "98765432"]):
        do(f"search_traces in {len(ids)}", client.search_traces, ids, include_spans=False)
    do("of a run", client.search_traces, [experiment], run_id=run_id, include_spans=False)
    do("of no run", client.search_traces, [experiment], run_id="f" * 32, include_spans=False)
    do("columns", lambda: sorted(mlflow.search_traces([experiment], return_type="pandas").columns))
    do("sessions", lambda: len(mlflow.search_sessions(locations=[experiment])))


def delete(record: Record, client: MlflowClient, experiment: str, trace_ids: list[str]) -> None:
    do = record.do
    do("delete_traces", client.delete_traces, experiment, trace_ids=trace_ids[:1])
    do("delete_traces again", client.delete_traces, experiment, trace_ids=trace_ids[:1])
    do("delete_traces unknown", client.delete_traces, experiment, trace_ids=[UNKNOWN])
    do("delete_traces nothing", client.delete_traces, experiment)
    do("delete_traces both", client.delete_traces, experiment, 5, trace_ids=trace_ids[:1])
    do("get deleted", client.get_trace, trace_ids[0])
    until = START // 10**6 + 3000
    do("delete_traces until", client.delete_traces, experiment, until, 2)
    do("left", client.search_traces, [experiment], include_spans=False, order_by=["timestamp"])
    do("delete_traces none", client.delete_traces, experiment, until, 0)
    do("delete_traces nowhere", client.delete_traces, "98765432", until)
