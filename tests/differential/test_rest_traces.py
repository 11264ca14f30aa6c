"""Traces told to stock MLflow and to the product in the same words: all reads are equal."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import zlib
from typing import Any

import pytest

from tests.differential.trace_pair import (
    ID,
    START,
    TOLD,
    VALUES,
    Two,
    attribute,
    new_id,
    span,
    text,
    two,
)

__all__ = ["two"]


def test_spans_then_info(two: Two) -> None:
    trace = new_id()
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    root = [
        text("mlflow.spanInputs", {"messages": [{"role": "user", "content": "hey"}]}),
        text("mlflow.spanOutputs", "out"),
        text("mlflow.spanType", '"CHAIN"'),
        text("user.id", "bob"),
        text("mlflow.traceTag.team", "red"),
        text("mlflow.traceTag.mlflow.traceName", "named"),
    ]
    events = [{"name": "e", "timeUnixNano": START + 5, "attributes": [text("a", "b"), *VALUES[:3]]}]
    links = [{"traceId": new_id(), "spanId": new_id(16), "attributes": [text("q", "r")]}]
    cost = {"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3}
    two.export(
        [
            span(trace, 1, 0, 0, *root, *VALUES, events=events, links=links, status={"code": 1}),
            span(trace, 2, 1, 10, text("mlflow.chat.tokenUsage", usage), text("session.id", "s")),
            span(trace, 3, 2, 20, text("mlflow.chat.tokenUsage", usage)),
            span(
                trace, 4, 1, 30, text("mlflow.llm.cost", cost), status={"code": 2, "message": "m"}
            ),
        ],
        [
            text("service.name", "svc"),
            text("telemetry.sdk.name", "x"),
            attribute("n", {"intValue": 4}),
        ],
    )
    two.reads(f"tr-{trace}")
    two.export([span(trace, 5, 1, -5, attribute("gen_ai.usage.input_tokens", {"intValue": 10}))])
    two.reads(f"tr-{trace}")
    for sides in (two.stock, two.product):
        body = {"trace": {"trace_info": {**TOLD, "trace_id": f"tr-{trace}"}}}
        assert sides.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200
    two.reads(f"tr-{trace}")
    two.same("PATCH", f"/api/2.0/mlflow/traces/tr-{trace}/tags", {"key": "k", "value": "v" * 9000})
    two.same("DELETE", f"/api/3.0/mlflow/traces/tr-{trace}/tags", {"key": "t"})
    two.same("DELETE", f"/api/3.0/mlflow/traces/tr-{trace}/tags", {"key": "t"})
    two.reads(f"tr-{trace}")


def test_a_second_info_replaces_previews(two: Two) -> None:
    """An empty preview replaces a text or none; an absent one replaces nothing."""
    outputs = text("mlflow.spanOutputs", "out")
    for first, second in itertools.product((None, "", "a"), repeat=2):
        trace = new_id()
        two.export([span(trace, 1, 0, 0, outputs)])
        for preview in (first, second):
            told = {**copy.deepcopy(TOLD), "trace_id": f"tr-{trace}", "request_preview": "rp"}
            if preview is not None:
                told["response_preview"] = preview
            for side in (two.stock, two.product):
                body = {"trace": {"trace_info": told}}
                assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200
        two.same("GET", f"/api/3.0/mlflow/traces/tr-{trace}")


def test_a_deleted_run_takes_its_assessments_along(two: Two) -> None:
    """Those of each trace, however they came, and only those; they do not come back."""
    run_ids = []
    for side in (two.stock, two.product):
        created = side.ask("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": ID})[1]
        run_ids.append(created["run"]["info"]["run_id"])
    trace_ids = [f"tr-{new_id()}" for _ in range(2)]
    numbers = [new_id(8) for _ in range(4)]
    for side, run_id in zip((two.stock, two.product), run_ids, strict=True):

        def assessment(number: int, source: str | None, own: str = run_id) -> Any:
            metadata = {} if source is None else {"mlflow.assessment.sourceRunId": source or own}
            return {
                "assessment_id": f"a-{numbers[number]}",
                "assessment_name": "n",
                "source": SOURCE,
                "feedback": {"value": number},
                "metadata": {"m": "v", **metadata},
            }

        told = {**copy.deepcopy(TOLD), "assessments": [assessment(0, "")]}
        for trace_id in trace_ids:
            body = {"trace": {"trace_info": {**told, "trace_id": trace_id}}}
            assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200
            told["assessments"] = []
        path = f"/api/3.0/mlflow/traces/{trace_ids[1]}/assessments"
        for number, source in ((1, ""), (2, "another"), (3, None)):
            given = {"assessment": assessment(number, source)}
            assert side.ask("POST", path, given)[0] == 200
        for change in ("delete", "delete", "restore"):
            status = side.ask("POST", f"/api/2.0/mlflow/runs/{change}", {"run_id": run_id})[0]
            assert status == 200
    for trace_id in trace_ids:
        two.same("GET", f"/api/3.0/mlflow/traces/{trace_id}")


def test_info_then_spans(two: Two) -> None:
    trace = new_id()
    body = {"trace": {"trace_info": {**copy.deepcopy(TOLD), "trace_id": f"tr-{trace}"}}}
    two.same("POST", "/api/3.0/mlflow/traces", body)
    two.same("GET", f"/api/3.0/mlflow/traces/tr-{trace}")
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    two.export([span(trace, 1, 0, 0, text("mlflow.chat.tokenUsage", usage))])
    two.reads(f"tr-{trace}")


# ruff: noqa: RUF005 -- lists side by side read better than one
CONVENTIONS = [
    [text("openinference.span.kind", "LLM"), text("input.value", "i"), text("output.value", "o")]
    + [attribute("llm.token_count.prompt", {"intValue": 3}), text("llm.provider", "p")],
    [text("gen_ai.operation.name", "chat"), text("gen_ai.input.messages", [{"role": "user"}])]
    + [
        attribute("gen_ai.usage.input_tokens", {"intValue": 3}),
        text("gen_ai.tool.definitions", [1]),
    ]
    + [attribute("gen_ai.usage.output_tokens", {"intValue": 4})],
    [text("gen_ai.agent.name", "gemini-cli"), text("gen_ai.operation.name", "llm_call")]
    + [text("gen_ai.input.messages", "hi")]
    + [text("gen_ai.output.messages", [{"role": "model", "parts": [{"text": "x"}]}])],
    [text("span.type", "llm_request"), attribute("input_tokens", {"intValue": 3})]
    + [attribute("cache_read_tokens", {"intValue": 2}), text("new_context", "c")],
    [text("span.type", "tool"), text("file_path", "/x"), text("full_command", "<REDACTED>")],
    [text("traceloop.span.kind", "workflow"), text("gen_ai.prompt.0.content", "p")],
    [text("ai.operationId", "ai.generateText.doGenerate"), text("ai.prompt.messages", [1])]
    + [text("ai.response.text", "t"), text("ai.prompt.tools", ['{"a":1}'])],
    [text("ai.operationId", "ai.toolCall"), text("ai.toolCall.args", {"a": 1})],
    [text("voltagent.operation_id", "1"), text("entity.type", "agent"), text("input", "i")]
    + [attribute("usage.total_tokens", {"intValue": 9})],
    [text("lk.agent_name", "a"), text("lk.user_input", "u"), text("lk.response.text", "r")],
    [text("lmnr.span.type", "EXECUTOR"), text("lmnr.span.input", {"a": 1})],
    [text("langfuse.observation.type", "retriever"), text("langfuse.observation.output", "o")],
    [text("gcp.vertex.agent.llm_request", {"a": 1})],
    [text("mlflow.spanInputs", {"model": "no-such-model"}), text("mlflow.spanType", '"UNKNOWN"')],
]


@pytest.mark.parametrize("attributes", CONVENTIONS, ids=lambda convention: convention[0]["key"])
def test_other_conventions(two: Two, attributes: list[Any]) -> None:
    trace = new_id()
    events = [
        {"name": "gen_ai.user.message", "timeUnixNano": 1, "attributes": [text("content", "c")]},
        {"name": "gen_ai.choice", "timeUnixNano": 2, "attributes": [text("content", "d")]},
        {"name": "tool.output", "timeUnixNano": 3, "attributes": [text("output", "e")]},
        {
            "name": "gen_ai.content.prompt",
            "timeUnixNano": 4,
            "attributes": [text("gen_ai.prompt", "f")],
        },
    ]
    two.export([span(trace, 1, 0, 0, *attributes)])
    two.reads(f"tr-{trace}")
    two.export([span(trace, 2, 1, 0, *attributes, events=events)])
    two.reads(f"tr-{trace}")


def test_what_is_refused(two: Two) -> None:
    headers = {"x-mlflow-experiment-id": ID}
    protobuf = {**headers, "Content-Type": "application/x-protobuf"}
    two.same("POST", "/v1/traces", b"{}")
    two.same("POST", "/v1/traces", b"{}", headers)
    two.same("POST", "/v1/traces", b"{bad", headers)
    two.same("POST", "/v1/traces", b"\xff\xff\xff", protobuf)
    two.same("POST", "/v1/traces", b"x", {**headers, "Content-Type": "text/plain"})
    for encoding in ("gzip", "deflate", "br"):
        two.same("POST", "/v1/traces", b"x", {**headers, "Content-Encoding": encoding})
    no_id = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "", "spanId": "aa"}]}]}]}
    two.same("POST", "/v1/traces", no_id, headers)
    one_span = {"resourceSpans": [{"scopeSpans": [{"spans": [span(new_id(), 1)]}]}]}
    two.same("POST", "/v1/traces", one_span, {"x-mlflow-experiment-id": "99999999"})
    for path in ("nope", "get?trace_id=nope", "get", "batchGet", "batchGet?trace_ids=nope"):
        two.same("GET", f"/api/3.0/mlflow/traces/{path}")
    two.same("GET", "/api/2.0/mlflow/traces/nope/info")
    two.same("GET", "/ajax-api/2.0/mlflow/get-trace-artifact?request_id=nope")
    two.same("GET", "/ajax-api/2.0/mlflow/get-trace-artifact")
    two.same("GET", "/ajax-api/3.0/mlflow/get-trace-artifact?request_id=nope&path=abc")
    location = {"key": "mlflow.trace.spansLocation", "value": "v"}
    two.same("PATCH", "/api/2.0/mlflow/traces/nope/tags", location)
    two.same("PATCH", "/api/2.0/mlflow/traces/nope/tags", {"value": "v"})
    two.same("PATCH", "/api/2.0/mlflow/traces/nope/tags", {"key": "a?b", "value": "v"})
    name = {"key": "mlflow.traceName", "value": "v"}
    two.same("PATCH", "/api/2.0/mlflow/traces/nope/tags", name)
    two.same("PATCH", "/api/3.0/mlflow/traces/nope/tags", name)
    two.same("DELETE", "/api/2.0/mlflow/traces/nope/tags", {"key": "k"})
    two.same("PATCH", "/api/2.0/mlflow/traces/nope", {"timestamp_ms": 1, "status": "OK"})
    for more in ({}, {"max_traces": 1, "request_ids": ["a"]}, {"max_timestamp_millis": "x"}):
        body = {"experiment_id": ID, **more}
        two.same("POST", "/api/3.0/mlflow/traces/delete-traces", body)
    two.same(
        "POST", "/api/2.0/mlflow/traces/link-to-run", {"trace_ids": ["x"] * 101, "run_id": "r"}
    )
    prompts = [{"name": "p", "version": "1"}]
    body = {"trace_id": "nope", "prompt_versions": prompts}
    two.same("POST", "/api/2.0/mlflow/traces/link-prompts", body)


def test_packed_exports(two: Two) -> None:
    trace = new_id()
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span(trace, 1)]}]}]}).encode()
    headers = {"x-mlflow-experiment-id": ID}
    two.same("POST", "/v1/traces", gzip.compress(body), {**headers, "Content-Encoding": "gzip"})
    two.same("POST", "/v1/traces", zlib.compress(body), {**headers, "Content-Encoding": "deflate"})
    two.reads(f"tr-{trace}")


KINDS = (None, 0, 1, 2, 3, 4, 5, 6, 99)
KIND_NAMES = ("SPAN_KIND_UNSPECIFIED", "SPAN_KIND_CLIENT", "SPAN_KIND_CONSUMER")


def test_kinds_and_links_in_both_encodings(two: Two) -> None:
    headers = {"x-mlflow-experiment-id": ID, "Content-Type": "application/json; charset=utf-8"}
    for in_json in (False, True):
        trace, other = new_id(), new_id()
        links = [{"traceId": other, "spanId": f"{7:016x}"}]
        kinds = (*KINDS, *KIND_NAMES) if in_json else KINDS
        spans = [
            span(trace, number, 0, number, links=links, **({} if kind is None else {"kind": kind}))
            for number, kind in enumerate(kinds, start=1)
        ]
        if in_json:
            body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
            two.same("POST", "/v1/traces", body, headers)
        else:
            two.export(spans)
        two.reads(f"tr-{trace}")


def test_system_tags_of_a_root_span(two: Two) -> None:
    trace = new_id()
    keys = ("artifactLocation", "trace.spansLocation", "trace.archiveLocation", "other")
    tags = [text(f"mlflow.traceTag.mlflow.{key}", "x") for key in keys]
    two.export([span(trace, 1, 0, 0, *tags), span(trace, 2, 1, 0, *tags)])
    two.reads(f"tr-{trace}")


SOURCE = {"source_type": "LLM_JUDGE", "source_id": "g"}
CONTENTS: list[Any] = [
    *({"feedback": {"value": value}} for value in (True, "s", 3, [1, "a", {"b": 2}], {"k": 1.5})),
    {"feedback": {}},
    {"feedback": {"error": {"error_code": "E", "error_message": "m", "stack_trace": "s" * 12000}}},
    *({"expectation": {"value": value}} for value in ("x", {"a": 1}, False)),
    {"expectation": {}},
    {"expectation": {"serialized_value": {"serialization_format": "JSON_FORMAT", "value": "[1]"}}},
    {"expectation": {"serialized_value": {"serialization_format": "other", "value": "[1]"}}},
    {"issue": {"issue_name": "boo"}},
    {},
    {"feedback": {"value": 1}, "overrides": "a-none"},
]


def test_assessments(two: Two) -> None:
    trace_id = f"tr-{new_id()}"
    two.export([span(trace_id[3:], 1)])
    path = f"/api/3.0/mlflow/traces/{trace_id}/assessments"
    for number, content in enumerate(CONTENTS, start=10):
        given = {
            "assessment_name": "n",
            "source": SOURCE,
            "rationale": "why",
            "metadata": {"a": "b"},
            "span_id": "s",
            "create_time": f"2024-01-01T00:00:{number}.5Z",
            **content,
        }
        two.same("POST", path, {"assessment": given})
    two.same("POST", path, {"assessment": {"assessment_name": "n", "feedback": {"value": 1}}})
    two.same("POST", path, {})
    two.same("GET", path + "/none")
    two.same("DELETE", path + "/none")
    two.same("GET", "/api/3.0/mlflow/traces/nope/assessments/none")
    two.same("DELETE", "/api/3.0/mlflow/traces/nope/assessments/none")
    given = {"assessment_id": f"a-{new_id()}", "assessment_name": "first", "source": SOURCE}
    own = f"{path}/{given['assessment_id']}"
    two.same("POST", path, {"assessment": {**given, "feedback": {"value": 1}}})
    changes = {"assessment_name": "second", "feedback": {"value": "z"}, "metadata": {"b": "2"}}
    mask = "assessmentName,feedback,metadata"
    two.same("PATCH", own, {"assessment": changes, "update_mask": mask})
    wrong = {"assessment": {"expectation": {"value": "z"}}, "update_mask": "expectation"}
    two.same("PATCH", own, wrong)
    two.same("PATCH", own, {"assessment": {"rationale": "q"}})
    later = {"assessment_id": f"a-{new_id()}", "assessment_name": "later", "source": SOURCE}
    over = {**later, "feedback": {"value": 2}, "overrides": given["assessment_id"]}
    two.same("POST", path, {"assessment": over})
    two.same("GET", own)
    two.same("DELETE", f"{path}/{later['assessment_id']}")
    two.same("GET", own)
    two.same("GET", f"/api/3.0/mlflow/traces/{trace_id}")
