"""Traces of the gateway's calls: what an endpoint's experiment shows of them, and what not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.gateway import call_traces, guarded_calls
from mlcore.http import lambda_handler
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import span_packs
from mlcore.repos.users import users
from tests.contract import trace_calls
from tests.contract.conftest import Store
from tests.contract.gateway_requests import ask, events_of, post
from tests.contract.gateway_world import (
    KEY,
    PRICE,
    allow_local,
    budget,
    endpoint,
    guard,
    judge,
    model,
)
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.providers import (
    Provider,
    Told,
    anthropic,
    failing,
    gemini,
    openai,
    saying,
    serving,
)

Json = dict[str, Any]

DEBUG, INFO, ERROR = 10, 20, 40
SAID: list[Json] = [{"role": "user", "content": "hello there"}]


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


def tracked(name: str, *models: str) -> str:
    """The id of an endpoint's experiment."""
    made = endpoint(name, models[:1], models[1:], usage_tracking=True)
    return str(configuration.read("default").endpoints[made].experiment_id)


@pytest.fixture
def provider(store: Store) -> Iterator[Provider]:
    with serving(openai) as made:
        yield made


@pytest.fixture
def experiment(provider: Provider) -> str:
    """Of the endpoint ``chat``, which asks gpt-4o."""
    return tracked("chat", model("m", "openai", provider.url, model_name="gpt-4o"))


def spans_of(info: Json) -> list[Json]:
    """As they began, with their attributes' values."""
    experiment_id = info["trace_location"]["mlflow_experiment"]["experiment_id"]
    owner = span_packs.Owner("default", experiment_id, info["trace_id"])
    spans = [json.loads(line) for _, line in span_packs.read(owner)]
    for span in spans:
        span["attributes"] = {key: json.loads(text) for key, text in span["attributes"].items()}
    return sorted(spans, key=lambda span: int(span["start_time_unix_nano"]))


def test_a_call_is_a_trace(experiment: str, provider: Provider) -> None:
    body = {"model": "chat", "messages": SAID, "temperature": 0.5}
    path = "mlflow/v1/chat/completions"
    assert post(path, body, user_agent="OpenAI/Python 2.0", authorization="Basic x")[0] == 200
    (info,) = infos(experiment)
    metadata = info["trace_metadata"]
    assert info["state"] == "OK"
    assert (info["request_preview"], info["response_preview"]) == (
        "hello there",
        "echo: hello there",
    )
    assert info["tags"]["mlflow.traceName"] == "gateway/chat"
    assert metadata["mlflow.gateway.requestType"] == "unified/chat"
    assert metadata["mlflow.gateway.caller"] == "OpenAI"
    assert json.loads(metadata["mlflow.trace.tokenUsage"]) == {
        "input_tokens": 11,
        "output_tokens": 7,
        "total_tokens": 18,
    }
    assert json.loads(metadata["mlflow.trace.cost"])["total_cost"] == pytest.approx(PRICE)
    root, attempt = spans_of(info)
    (chat_endpoint,) = configuration.read("default").endpoints.values()
    assert metadata["mlflow.gateway.endpointId"] == chat_endpoint.endpoint_id
    assert (root["name"], attempt["name"]) == ("gateway/chat", "provider/openai/gpt-4o")
    assert attempt["parent_span_id"] == root["span_id"]
    attributes = root["attributes"]
    assert (attributes["endpoint_id"], attributes["endpoint_name"]) == (
        chat_endpoint.endpoint_id,
        "chat",
    )
    assert attributes["server_url"] == "localhost"
    # MLflow's server takes it from the outputs: the model that has answered.
    assert attributes["mlflow.llm.model"] == attributes["mlflow.spanOutputs"]["model"] == "gpt-4o"
    assert attributes["mlflow.spanInputs"] == {"n": 1, "messages": SAID, "temperature": 0.5}
    assert (
        attributes["mlflow.spanOutputs"]["choices"][0]["message"]["content"] == "echo: hello there"
    )
    attempt_attributes = attempt["attributes"]
    assert (attempt_attributes["mlflow.llm.provider"], attempt_attributes["mlflow.llm.model"]) == (
        "openai",
        "gpt-4o",
    )
    assert attempt_attributes["mlflow.chat.tokenUsage"]["total_tokens"] == 18
    assert attempt_attributes["mlflow.llm.cost"]["total_cost"] == pytest.approx(PRICE)
    assert (root["attributes"]["mlflow.spanType"], attempt_attributes["mlflow.spanType"]) == (
        "UNKNOWN",
        "LLM",
    )
    assert attempt_attributes["method"] == "chat"
    levels = [span["attributes"]["mlflow.spanLogLevel"] for span in (root, attempt)]
    assert levels == [DEBUG, INFO]
    assert metadata["mlflow.trace_schema.version"] == "3"
    assert "Basic x" not in str(spans_of(info))


def test_the_ui_finds_a_failed_call_by_its_level(experiment: str, provider: Provider) -> None:
    provider.answer = lambda request: Told(422, {"error": {"message": "no"}})
    assert post("mlflow/v1/chat/completions", {"model": "chat", "messages": SAID})[0] == 422
    (info,) = infos(experiment)
    levels = [span["attributes"]["mlflow.spanLogLevel"] for span in spans_of(info)]
    assert levels == [ERROR, ERROR]


def test_usage_is_counted_as_the_pages_count_it(experiment: str) -> None:
    for _ in range(3):
        assert post("chat/mlflow/invocations", {"messages": SAID})[0] == 200
    (chat_endpoint,) = configuration.read("default").endpoints.values()
    fields = {
        "experiment_ids": [experiment],
        "aggregations": [{"aggregation_type": "SUM"}],
        "filters": [f'trace.metadata.`mlflow.gateway.endpointId` = "{chat_endpoint.endpoint_id}"'],
    }
    for view, metric, expected in (
        ("TRACES", "total_tokens", 3 * 18),
        ("SPANS", "total_cost", 3 * PRICE),
    ):
        query = {**fields, "view_type": view, "metric_name": metric}
        (point,) = trace_calls.tell("POST", "3.0/traces/metrics", query)["data_points"]
        assert point["values"]["SUM"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("speaks", "name", "path", "body", "kind", "steps"),
    [
        (
            openai,
            "openai",
            "mlflow/v1/chat/completions",
            {"messages": SAID, "stream": True},
            "unified/chat",
            ["choices", 0, "message", "content"],
        ),
        (
            openai,
            "openai",
            "openai/v1/chat/completions",
            {"messages": SAID, "stream": True},
            "passthrough/model/openai-chat",
            ["choices", 0, "message", "content"],
        ),
        (
            anthropic,
            "anthropic",
            "anthropic/v1/messages",
            {"messages": SAID, "max_tokens": 5, "stream": True},
            "passthrough/model/anthropic-messages",
            ["content", 0, "text"],
        ),
        (
            gemini,
            "gemini",
            "gemini/v1beta/models/made:streamGenerateContent",
            {"contents": [{"role": "user", "parts": [{"text": "hellothere"}]}]},
            "passthrough/model/gemini-generateContent",
            ["candidates", 0, "content", "parts", 0, "text"],
        ),
    ],
)
def test_a_stream_is_kept_whole(
    provider: Provider, speaks: Any, name: str, path: str, body: Json, kind: str, steps: list[Any]
) -> None:
    provider.answer = speaks
    experiment = tracked("made", model("m", name, provider.url, model_name="x"))
    named = {} if "gemini" in path else {"model": "made"}
    assert events_of(post(path, {**named, **body})[2])
    (info,) = infos(experiment)
    assert info["trace_metadata"]["mlflow.gateway.requestType"] == kind
    usage = json.loads(info["trace_metadata"]["mlflow.trace.tokenUsage"])
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] >= 10
    attributes, attempted = (span["attributes"] for span in spans_of(info))
    called = ("chat_stream", True) if kind == "unified/chat" else (None, None)
    assert (attempted.get("method"), attempted.get("streaming")) == called
    answer = attributes["mlflow.spanOutputs"]
    for step in steps:
        answer = answer[step]
    assert answer == "echo: hellothere"
    assert attributes.get("mlflow.message.format") == (None if name == "openai" else name)


def test_failures_are_kept(provider: Provider) -> None:
    """Each model that was asked is a span; what a budget has refused is a trace as well."""
    with serving(failing(404, f"no, {KEY}")) as broken:
        ids = [model("a", "openai", broken.url), model("b", "openai", provider.url, model_name="x")]
        experiment = tracked("chat", *ids)
        assert post("chat/mlflow/invocations", {"messages": SAID})[0] == 200
        provider.answer = failing(422, "no tools")
        status, _, text = post("chat/mlflow/invocations", {"messages": SAID})
    budget("GLOBAL", 0.0)
    assert (status, post("chat/mlflow/invocations", {"messages": SAID})[0]) == (422, 429)
    refused, failed, passed = map(spans_of, infos(experiment))
    assert [span["status"]["code"][12:] for span in passed] == ["OK", "ERROR", "OK"]
    assert [span["status"]["code"][12:] for span in failed] == ["ERROR", "ERROR", "ERROR"]
    (event,) = failed[0]["events"]
    message = "422: All 2 fallback attempts failed. Last error: 422: no tools"
    assert event["attributes"]["exception.message"] == message
    assert passed[1]["status"]["message"] == "HTTPException: 404: no, [REDACTED]"
    assert [span["name"] for span in refused] == ["gateway/chat"]
    assert "Budget limit exceeded" in refused[0]["status"]["message"]
    assert KEY not in text


def test_guardrails_are_spans(experiment: str, provider: Provider) -> None:
    """Within the call; what the judge is asked is a call of its own endpoint."""
    verdict = {"result": "no", "rationale": "It is rude."}
    (chat_endpoint,) = configuration.read("default").endpoints.values()
    with serving(saying(json.dumps(verdict))) as aside:
        own = tracked("judge", model("j", "openai", aside.url))
        guard(
            chat_endpoint.endpoint_id, judge("polite", "Is {{ inputs }} polite?", "judge"), "BEFORE"
        )
        assert post("chat/mlflow/invocations", {"messages": SAID})[0] == 400
    (info,) = infos(experiment)
    root, guardrail, judging = spans_of(info)
    assert (info["state"], guardrail["name"], judging["name"]) == (
        "ERROR",
        "guardrail/polite",
        "judge",
    )
    assert judging["attributes"]["mlflow.spanOutputs"] == {
        "passed": False,
        "rationale": "It is rude.",
    }
    assert (guardrail["parent_span_id"], judging["parent_span_id"]) == (
        root["span_id"],
        guardrail["span_id"],
    )
    assert "blocked: It is rude." in root["status"]["message"]
    assert len(infos(own)) == 1


def test_who_called_is_kept(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the configuration is read once, for the policy and the call."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "USE")
    users.create("ann", "", is_admin=False)
    read = Mock(wraps=configuration.read)
    monkeypatch.setattr(configuration, "read", read)
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    body = {"model": "chat", "messages": SAID}
    path = "mlflow/v1/chat/completions"
    assert ask("POST", path, body, handler=handler, caller=named("ann"))[0] == 200
    assert read.call_count == 1
    monkeypatch.setenv(AUTHENTICATION, "")
    (info,) = infos(experiment)
    assert info["trace_metadata"]["mlflow.auth.username"] == "ann"


def test_a_call_does_not_fail_with_its_trace(
    experiment: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bool:
        raise RuntimeError("no table")

    with monkeypatch.context() as patch:
        patch.setattr(call_traces, "_write_to_experiment", fail)
        assert post("chat/mlflow/invocations", {"messages": SAID})[0] == 200
    assert infos(experiment) == []
    store.api.post("experiments/delete", experiment_id=experiment)
    assert (
        guarded_calls.complete_chat("default", "chat", {"messages": SAID})["provider"] == "openai"
    )


def test_long_calls_are_files_and_no_item_holds_a_key(
    experiment: str, store: Store, tmp_path: Path
) -> None:
    text = "".join(f"{number:x} " for number in range(90_000))
    assert (
        post("chat/mlflow/invocations", {"messages": [{"role": "user", "content": text}]})[0] == 200
    )
    (info,) = infos(experiment)
    assert spans_of(info)[0]["attributes"]["mlflow.spanInputs"]["messages"][0]["content"] == text
    kept = [
        path.read_bytes() for path in (tmp_path / "files").rglob("traces/**/*") if path.is_file()
    ]
    assert len(kept) == 1
    assert KEY not in str(store.items()) + str(spans_of(info))
