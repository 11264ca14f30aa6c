"""Calls of models told to stock MLflow and to the product in many conventions: the same costs of
spans and traces, the same sums in metrics, the same answers to searches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.differential.trace_pair import ID, START, Two, attribute, new_id, span, text
from tests.e2e import warm_clients
from tests.servers import environment

SCRIPT = Path(__file__).parent / "cost_script.py"
MS = START // 1_000_000
LOCATIONS = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": ID}}]


@pytest.fixture(scope="module")
def two(stock_url: str, product_url: str) -> Two:
    return Two(stock_url, product_url)


def counts(**amounts: int) -> list[Any]:
    """``a__b`` stands for the attribute ``a.b``."""
    return [
        attribute(key.replace("__", "."), {"intValue": value}) for key, value in amounts.items()
    ]


def usage(**amounts: int) -> Any:
    return text("mlflow.chat.tokenUsage", amounts)


CALLS: dict[str, list[Any]] = {
    "OpenInference": [
        *(text("openinference.span.kind", "LLM"), text("llm.model_name", "gpt-4o-2024-08-06")),
        *(text("llm.provider", "openai"), text("input.value", "i"), text("output.value", "o")),
        *counts(llm__token_count__prompt=1200, llm__token_count__completion=34),
        *counts(llm__token_count__total=1234, llm__token_count__prompt_details__cache_read=1024),
    ],
    "OpenInference, embedding": [
        *(text("openinference.span.kind", "EMBEDDING"), *counts(llm__token_count__prompt=77)),
        text("embedding.model_name", "text-embedding-3-small"),
    ],
    "Traceloop": [
        *(text("traceloop.span.kind", "task"), text("gen_ai.system", "Anthropic")),
        text("gen_ai.request.model", "claude-haiku-4-5"),
        *counts(gen_ai__usage__prompt_tokens=11, gen_ai__usage__completion_tokens=22),
        *counts(llm__usage__total_tokens=33),
        *(text("gen_ai.prompt.0.content", "p"), text("gen_ai.completion.0.content", "c")),
    ],
    "GenAI": [
        *(text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "anthropic")),
        *(text("gen_ai.request.model", "no"), text("gen_ai.response.model", "claude-sonnet-4-5")),
        *counts(gen_ai__usage__input_tokens=5000, gen_ai__usage__output_tokens=600),
        *counts(gen_ai__usage__cache_read__input_tokens=3000),
        *counts(gen_ai__usage__cache_creation__input_tokens=1000),
    ],
    "GenAI, a provider that no list knows": [
        *(text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "az.ai.openai")),
        *(text("gen_ai.request.model", "gpt-4o"), *counts(gen_ai__usage__output_tokens=9)),
    ],
    "Spring AI": [
        *(text("gen_ai.operation.name", "chat"), text("gen_ai.system", "openai")),
        text("gen_ai.response.model", "gpt-4o-mini"),
        *counts(gen_ai__usage__input_tokens=1, gen_ai__usage__output_tokens=2),
    ],
    "Vercel AI": [
        text("ai.operationId", "ai.generateText.doGenerate"),
        *(text("gen_ai.system", "openai.chat"), text("gen_ai.request.model", "gpt-4.1")),
        *(text("ai.prompt.messages", [{"role": "user"}]), text("ai.response.text", "t")),
        *counts(gen_ai__usage__input_tokens=17, gen_ai__usage__output_tokens=19),
    ],
    "Google ADK": [
        *(text("gen_ai.system", "gcp.vertex.agent"), text("gen_ai.operation.name", "call_llm")),
        text("gcp.vertex.agent.llm_request", {"model": "gemini-2.5-flash", "contents": []}),
        text("gen_ai.request.model", "gemini-2.5-flash"),
        *counts(gen_ai__usage__input_tokens=400, gen_ai__usage__output_tokens=41),
    ],
    "Google ADK, the model in its input": [
        text("gcp.vertex.agent.llm_request", {"model": "gemini-2.5-pro", "contents": []}),
        *counts(gen_ai__usage__input_tokens=400, gen_ai__usage__output_tokens=41),
    ],
    "VoltAgent": [
        *(text("voltagent.operation_id", "1"), text("span.type", "llm")),
        *(text("llm.messages", [{"role": "user"}]), text("gen_ai.response.model", "o3-mini")),
        *counts(llm__usage__prompt_tokens=5, llm__usage__completion_tokens=6),
    ],
    "LiveKit": [
        *(text("lk.chat_ctx", {}), text("gen_ai.request.model", "gpt-4o-mini")),
        *counts(gen_ai__usage__input_tokens=31, gen_ai__usage__output_tokens=3),
    ],
    "Laminar": [
        *(text("lmnr.span.type", "LLM"), text("gen_ai.system", "mistral")),
        *(text("gen_ai.request.model", "mistral-large-latest"), text("lmnr.span.input", "i")),
        *counts(gen_ai__usage__input_tokens=8, gen_ai__usage__output_tokens=9),
    ],
    "Langfuse": [
        *(text("langfuse.observation.type", "generation"), text("gen_ai.request.model", "gpt-5")),
        *counts(gen_ai__usage__input_tokens=8, gen_ai__usage__output_tokens=9),
    ],
    "Gemini's command line": [
        *(text("gen_ai.agent.name", "gemini-cli"), text("gen_ai.operation.name", "llm_call")),
        text("gen_ai.request.model", "gemini-2.5-pro"),
        *counts(gen_ai__usage__input_tokens=8, gen_ai__usage__output_tokens=9),
    ],
    "Claude Code": [
        *(text("span.type", "llm_request"), text("gen_ai.request.model", "claude-opus-4-1")),
        *counts(input_tokens=5, output_tokens=600, cache_read_tokens=20_000),
        *counts(cache_creation_tokens=1000),
    ],
    "MLflow": [
        *(text("mlflow.llm.model", "gpt-4o"), text("mlflow.llm.provider", "openai")),
        usage(input_tokens=3, output_tokens=4, total_tokens=7),
    ],
    "MLflow, a cache for an hour": [
        text("mlflow.llm.model", "anthropic/claude-sonnet-4-5"),
        usage(
            input_tokens=9000,
            output_tokens=400,
            total_tokens=9400,
            cache_read_input_tokens=1000,
            cache_creation_input_tokens=3000,
            cache_creation_input_tokens_above_1hr=2000,
        ),
    ],
    "MLflow, the model in its inputs": [
        text("mlflow.spanInputs", {"model": "gpt-4o-mini", "messages": []}),
        usage(input_tokens=3, output_tokens=4, total_tokens=7),
    ],
    "a model at Databricks": [
        text("mlflow.llm.model", "databricks-claude-sonnet-4"),
        usage(input_tokens=3, output_tokens=4, total_tokens=7),
    ],
    "a route": [
        text("mlflow.llm.model", "endpoints:/gpt-4o"),
        usage(input_tokens=3, output_tokens=4, total_tokens=7),
    ],
    "a model without a price": [text("mlflow.llm.model", "none"), usage(input_tokens=3)],
    "a model that costs nothing": [text("mlflow.llm.model", "dall-e-3"), usage(input_tokens=3)],
    "no tokens": [text("mlflow.llm.model", "gpt-4o"), usage(input_tokens=0, total_tokens=5)],
    "a cost that is told": [
        *(text("mlflow.llm.model", "gpt-4o"), usage(input_tokens=3, output_tokens=4)),
        text("mlflow.llm.cost", {"input_cost": 1.5, "output_cost": 2, "total_cost": 3.5}),
    ],
}


@pytest.mark.parametrize("attributes", CALLS.values(), ids=CALLS)
def test_one_call(two: Two, attributes: list[Any]) -> None:
    trace = new_id()
    two.export([span(trace, 1, 0, 0, *attributes)])
    two.reads(f"tr-{trace}")


def test_every_call_but_the_odd_ones_costs_something(two: Two) -> None:
    free = 0
    for attributes in CALLS.values():
        trace = new_id()
        two.export([span(trace, 1, 0, 0, *attributes)])
        answer = two.product.ask("GET", f"/api/3.0/mlflow/traces/tr-{trace}")[1]
        cost = answer["trace"]["trace_info"]["trace_metadata"].get("mlflow.trace.cost", "{}")
        free += not json.loads(cost).get("total_cost")
    assert free == 4


def test_a_tree_in_several_exports(two: Two) -> None:
    """Costs of what is below a span that has one are not added to it."""
    trace = new_id()
    calls = list(CALLS.values())
    agent = [text("mlflow.spanType", "AGENT")]
    two.export([span(trace, 4, 2, 3, *calls[0]), span(trace, 5, 2, 4, *calls[3])])
    two.reads(f"tr-{trace}")
    two.export([span(trace, 3, 1, 2, *calls[2]), span(trace, 6, 3, 5, *calls[5])])
    two.reads(f"tr-{trace}")
    two.export([span(trace, 2, 1, 1, *agent)])
    two.reads(f"tr-{trace}")
    two.export([span(trace, 1, 0, 0, *agent, text("mlflow.spanInputs", "i"))])
    two.reads(f"tr-{trace}")
    whole = usage(
        input_tokens=9000,
        output_tokens=9,
        total_tokens=9009,
        cache_read_input_tokens=8000,
        cache_creation_input_tokens=100,
    )
    two.export([span(trace, 2, 1, 1, *agent, whole, text("mlflow.llm.model", "gpt-4o"))])
    two.reads(f"tr-{trace}")


TOLD_COST = '{"input_cost": 0.25, "output_cost": 0.25, "total_cost": 0.5, "x": 1}'


@pytest.mark.parametrize("metadata", [{}, {"mlflow.trace.cost": TOLD_COST}])
@pytest.mark.parametrize("first", ["info", "spans"])
def test_with_info(two: Two, first: str, metadata: dict[str, str]) -> None:
    trace = new_id()
    calls = list(CALLS.values())
    info = {
        "trace_id": f"tr-{trace}",
        "trace_location": LOCATIONS[0],
        "request_time": "2023-11-14T22:13:20Z",
        "execution_duration": "0.5s",
        "state": "OK",
        "trace_metadata": {"mlflow.trace.sizeStats": '{"num_spans": 2}', **metadata},
    }

    def inform() -> None:
        for side in (two.stock, two.product):
            body = {"trace": {"trace_info": info}}
            assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200

    if first == "info":
        inform()
    two.export([span(trace, 1, 0, 0, *calls[3]), span(trace, 2, 0, 1, *calls[15])])
    if first == "spans":
        inform()
    two.reads(f"tr-{trace}")


def test_metrics_and_searches(two: Two) -> None:
    """What the charts and columns of costs in the UI ask for."""
    for number, attributes in enumerate(CALLS.values()):
        trace = new_id()
        spans = [span(trace, 1, 0, number, *attributes), span(trace, 2, 1, number, *attributes)]
        two.export(spans)
    window = {"start_time_ms": MS - 1000, "end_time_ms": MS + 100_000}
    for metric in ("input_cost", "output_cost", "total_cost"):
        for dimensions in ([], ["span_model_name"], ["span_model_provider"]):
            for interval in ({}, {"time_interval_seconds": 86_400}):
                body = {
                    "experiment_ids": [ID],
                    "view_type": "SPANS",
                    "metric_name": metric,
                    "aggregations": [{"aggregation_type": "SUM"}, {"aggregation_type": "AVG"}],
                    "dimensions": dimensions,
                    **window,
                    **interval,
                }
                stock, ours = (
                    side.ask("POST", "/api/3.0/mlflow/traces/metrics", body)[:2]
                    for side in (two.stock, two.product)
                )
                assert stock[0] == ours[0] == 200
                assert stock[1]["data_points"]
                assert rounded(ours[1]) == rounded(stock[1]), body
    has_cost = "metadata.`mlflow.trace.cost` IS NOT NULL"
    for filter_string in (has_cost, has_cost.replace("NOT ", "")):
        wanted = {"locations": LOCATIONS, "filter": filter_string, "max_results": 100}
        two.same("POST", "/api/3.0/mlflow/traces/search", wanted)


def rounded(value: Any) -> Any:
    """Sums of floats depend on their order."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 12) if isinstance(value, float) else value


def test_spans_in_a_file(two: Two) -> None:
    """As clients before 3.5 keep them: such spans cost what they tell, on both servers."""
    trace_id = f"tr-{new_id()}"
    attributes = {
        "mlflow.traceRequestId": json.dumps(trace_id),
        "mlflow.llm.model": '"gpt-4o"',
        "mlflow.chat.tokenUsage": '{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}',
    }
    stored_span = {
        "trace_id": "AAAAAAAAAAAAAAAAAAAAAQ==",
        "span_id": "AAAAAAAAAAE=",
        "parent_span_id": None,
        "name": "call",
        "start_time_unix_nano": START,
        "end_time_unix_nano": START + 5,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": attributes,
    }
    info = {"trace_id": trace_id, "trace_location": LOCATIONS[0], "state": "OK"}
    for side in (two.stock, two.product):
        body = {"trace": {"trace_info": {**info, "request_time": "2023-11-14T22:13:20Z"}}}
        assert side.ask("POST", "/api/3.0/mlflow/traces", body)[0] == 200
        path = f"{ID}/traces/{trace_id}/artifacts/traces.json"
        sent = side.ask(
            "PUT", f"/api/2.0/mlflow-artifacts/artifacts/{path}", {"spans": [stored_span]}
        )
        assert sent[0] == 200
    two.same("GET", f"/api/3.0/mlflow/traces/{trace_id}")
    two.same("GET", f"/ajax-api/2.0/mlflow/get-trace-artifact?request_id={trace_id}")


@pytest.mark.parametrize("logging", ["async", "sync"])
def test_what_the_client_reads(two: Two, logging: str, tmp_path: Path) -> None:
    """In the background the client tells of a trace before its last spans are there; stock leaves
    their cost out of the sum then, so that its answer is asked for without."""
    read = []
    for url, how in ((two.stock.url, "sync"), (two.product.url, logging)):
        command = [str(SCRIPT), url, f"costs {new_id()}", how]
        run = warm_clients.run(sys.executable, "mlflow", command, tmp_path, environment())
        assert run.returncode == 0, run.stdout + run.stderr
        read.append(json.loads(run.stdout))
    stock, ours = read
    assert rounded(ours) == rounded(stock)
    assert [(row["name"], bool(row["cost"])) for row in stock] == [
        *(("agent of 1", True), ("agent of 2", True), ("agent of 4", True)),
        *(("call 0", True), ("call 3", False)),
    ]
