"""JSON that no program should send, of callers and of providers: nested too deeply, with halves of
surrogate pairs, with numbers that are none, and compressed to a bomb. It fails nothing, and a call
through the gateway is traced all the same."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from demo.service import parse_features
from mlcore.http import PlainRoute, Sent
from mlcore.providers import transport
from mlcore.repos.gateway import configuration
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import tell
from tests.doubles.providers import Asked, Provider, Told, openai, serving
from traces.ingest import exports

DEEP: Final = ("[" * 5000 + "]" * 5000, '{"a":' * 2500 + "1" + "}" * 2500, "[" * 50_000)
STRANGE: Final = (
    *(*DEEP, '"\\ud800"', '{"\\ud800":1}', "NaN", "-Infinity", "1e999", "9" * 5000, '"\\u0000"'),
    *("null", "true", '""', "[]", "{}", "[null]", '{"a":1,"a":2}'),
)
CHAT: Final = {"model": "chat", "messages": [{"role": "user", "content": "hello there"}]}
SURROGATE: Final = {**CHAT, "messages": [{"role": "user", "content": "hello \ud800"}]}
PATHS: Final = ("mlflow/v1/chat/completions", "openai/v1/chat/completions")
FIELDS: Final = ("messages", "tools", "temperature", "stop", "response_format", "n", "other")
FUNCTIONS: Final = ("agent_tools", "gateway_calls", "traces", "ui", "users")


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))
    with serving(openai) as made:
        yield made


@pytest.fixture
def experiment(provider: Provider) -> str:
    """The experiment with the traces of the endpoint ``chat``."""
    models = [model("m", "openai", provider.url, model_name="gpt-4o")]
    made = endpoint("chat", models, usage_tracking=True)
    return str(configuration.read("default").endpoints[made].experiment_id)


def traced(experiment: str) -> int:
    """The number of traces of an experiment."""
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
    sent = {"locations": [location], "max_results": 500}
    return len(tell("POST", "3.0/traces/search", sent)["traces"])


def status_of(function: str, method: str, path: str, body: bytes, **headers: str) -> int:
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "localhost", **headers},
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": True,
        "body": base64.b64encode(body).decode(),
    }
    return int(import_module(f"{function}.app").handler(event, None)["statusCode"])


def plain_routes() -> Iterator[tuple[str, PlainRoute]]:
    for function in FUNCTIONS:
        for route in getattr(import_module(f"{function}.app"), "PLAIN_ROUTES", ()):
            if route.method not in {"GET", "HEAD", "DELETE"}:
                yield function, route


def test_bodies_of_plain_routes(store: Store) -> None:
    routes = list(plain_routes())
    assert len(routes) > 20
    failed = []
    for function, route in routes:
        for text in (*DEEP, *(f'{{"features":{deep}}}' for deep in DEEP)):
            status = status_of(function, route.method, route.path, text.encode())
            if status >= 500:
                failed.append((route.method, route.path, text[:20], status))
    assert not failed


def test_features_of_the_demo() -> None:
    for deep in DEEP:
        sent = Sent("POST", "/", {}, {"body": deep, "isBase64Encoded": False})
        assert parse_features(sent) == parse_features(sent._replace(event={"body": ""}))


def test_variables_of_graphql(store: Store) -> None:
    for deep in DEEP:
        body = json.dumps({"query": "{__typename}", "variables": deep}).encode()
        assert status_of("ui", "POST", "/graphql", body) < 500


def test_callers_of_the_gateway(experiment: str, provider: Provider) -> None:
    answered = 0
    provider.answer = lambda _: openai(Asked("/chat/completions", {}, CHAT))
    for path in PATHS:
        for field in FIELDS:
            for text in STRANGE:
                sent = json.dumps({**CHAT, field: "@"}).replace('"@"', text)
                status = post(path, sent)[0]
                assert status in {200, 400, 422}, (path, field, text[:50])
                answered += status == 200
        assert post(path, SURROGATE)[0] == 400
    assert answered > len(STRANGE)
    assert traced(experiment) == len(provider.asked)


def test_arguments_of_tools(provider: Provider) -> None:
    endpoint("chat", [model("a", "anthropic", provider.url)])
    for deep in DEEP:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
        said = [*CHAT["messages"], {"role": "assistant", "content": None, "tool_calls": [call]}]
        status = post(PATHS[0], {"model": "chat", "messages": said, "max_tokens": 5})[0]
        assert status == 422
    assert not provider.asked


def test_answers_of_providers(experiment: str, provider: Provider) -> None:
    completion = openai(Asked("/chat/completions", {}, CHAT)).body
    shapes = (
        {**completion, "usage": "@"},
        {**completion, "choices": [{**completion["choices"][0], "message": {"content": "@"}}]},
        {"error": {"message": "@"}},
        "@",
    )
    asked = 0
    for text in STRANGE:
        for shape in shapes:
            said = json.dumps(shape).replace('"@"', text)
            for is_stream in (False, True):
                provider.answer = _saying(said, is_stream=is_stream)
                for path in PATHS:
                    status, _, answer = post(path, {**CHAT, "stream": is_stream})
                    assert status in {200, 502}, (path, said[:200], status)
                    assert "INTERNAL_ERROR" not in str(answer), (path, said[:200])
                    asked += 1
    assert len(provider.asked) == asked
    assert traced(experiment) == asked


def _saying(text: str, *, is_stream: bool) -> Any:
    if is_stream:
        events = f"data: {text.replace('message', 'delta')}\n\ndata: [DONE]\n\n"
        return lambda _: Told(parts=(events.encode(),), content_type="text/event-stream")
    return lambda _: Told(parts=(text.encode(),))


def test_a_line_of_a_stream_ends(
    experiment: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 100_000)
    part = b"data: " + b"x" * 60_000
    provider.answer = lambda _: Told(parts=(part,) * 10, content_type="text/event-stream")
    _, _, answer = post(PATHS[0], {**CHAT, "stream": True})
    assert "exceeds 100000 bytes" in answer


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_spans(store: Store, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a second member follows a small one."""
    monkeypatch.setattr(exports, "MAX_BYTES", 1_000_000)
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    small, bomb = compress(b"a"), compress(b"a" * 10_000_000)
    bodies = {bomb: 413, small[:-3]: 400, small + b"garbage": 400, bomb[:-3]: 413, b"": 400}
    bodies[small + bomb] = 413 if encoding == "gzip" else 400
    bodies[small + bomb[:30]] = 400
    for body, status in bodies.items():
        sent = {"content-encoding": encoding, "content-type": "application/x-protobuf"}
        sent["x-mlflow-experiment-id"] = "0"
        assert status_of("traces", "POST", "/v1/traces", body, **sent) == status


@pytest.mark.parametrize("text", ["[" * 5000, "{}", "no JSON", "null", "9" * 5000])
def test_tags_that_are_no_list_of_models(store: Store, text: str) -> None:
    """A client may set the tags to which the server adds the models of a run, and the versions of a
    logged model."""
    api = store.api
    run_id = api.new_run("0")
    api.post("runs/set-tag", run_id=run_id, key="mlflow.log-model.history", value=text)
    described = {"artifact_path": "a", "flavors": {}, "utc_time_created": "t", "run_id": run_id}
    answer = api.ask("POST", "runs/log-model", run_id=run_id, model_json=json.dumps(described))
    assert answer.status == 400
    assert "is not a JSON list" in answer.body["message"]
    tags = [{"key": "mlflow.modelVersions", "value": text}]
    model = api.post("logged-models", experiment_id="0", name="m", tags=tags)["model"]["info"]
    api.post("registered-models/create", name="r")
    source = f"models:/{model['model_id']}"
    made = api.post("model-versions/create", name="r", source=source, model_id=model["model_id"])
    assert made["model_version"]["version"] == "1"
    assert api.get(f"logged-models/{model['model_id']}")["model"]["info"]["tags"] == tags


@pytest.mark.parametrize("text", STRANGE)
def test_amounts_of_traces(store: Store, text: str) -> None:
    experiment = store.api.new_experiment("e")
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
    amounts = {"mlflow.trace.tokenUsage": text, "mlflow.trace.cost": text}
    info = {
        "trace_id": "tr-1",
        "trace_location": location,
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
        "trace_metadata": amounts,
    }
    tell("POST", "3.0/traces", {"trace": {"trace_info": info}})
    assert traced(experiment) == 1
