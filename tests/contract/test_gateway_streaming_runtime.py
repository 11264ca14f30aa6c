"""The runtime that streams answers in Lambda, with a double of the runtime API: each part is sent
when the provider has sent it, a caller who leaves ends the provider's call, errors are told in
trailers, and logins are those of the HTTP API."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, cast

import pytest

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from gateway_calls.streaming_runtime import RuntimeApi, serve
from mlcore.auth.permissions import GATEWAY_ENDPOINT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, Told, openai, serving
from tests.doubles.runtime_api import RuntimeApiDouble, runtime_api
from tests.engines import ROOT

Json = dict[str, Any]

PATH = "mlflow/v1/chat/completions"
CHAT: Json = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}
END_OF_METADATA = bytes(8)


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as double:
        endpoint("chat", [model("m", "openai", double.url, model_name="gpt-4o")])
        yield double


@pytest.fixture
def api() -> Iterator[RuntimeApiDouble]:
    with runtime_api() as double:
        yield double


def run(api: RuntimeApiDouble, handler: Handler = gateway_calls.app.handler) -> None:
    """Starts the runtime; it ends with the double."""

    def loop() -> None:
        with suppress(OSError, HTTPException, ValueError):
            serve(RuntimeApi(api.address), handler)

    threading.Thread(target=loop, daemon=True).start()


def rest_event(body: Any, path: str = PATH, authorizer: Any = None, **identity: str) -> Json:
    """What API Gateway's REST API sends for a POST; it passes all bodies as Base64."""
    return {
        "resource": "/gateway/{proxy+}",
        "path": f"/gateway/{path}",
        "httpMethod": "POST",
        "multiValueHeaders": {"Content-Type": ["application/json"], "Host": ["example.com"]},
        "multiValueQueryStringParameters": None,
        "requestContext": {
            "apiId": "abc",
            "requestId": "request-1",
            "identity": {"sourceIp": "192.0.2.1", **identity},
            **({} if authorizer is None else {"authorizer": authorizer}),
        },
        "body": base64.b64encode(json.dumps(body).encode()).decode(),
        "isBase64Encoded": True,
    }


def metadata_in(content: bytes) -> tuple[Json, bytes]:
    """Metadata of a streamed answer, and what follows it."""
    metadata, _, body = content.partition(END_OF_METADATA)
    return json.loads(metadata), body


def sent(word: str) -> str:
    choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
    return f"data: {json.dumps({**HEAD, 'choices': [choice]})}\n\n"


def streaming(parts: Callable[[], Iterator[str]]) -> Told:
    """An answer whose parts are made while they are sent."""

    class Parts:
        def __iter__(self) -> Iterator[str]:
            return parts()

    return Told(parts=cast("Any", Parts()), content_type="text/event-stream")


def test_the_first_token_comes_before_the_provider_has_ended(
    api: RuntimeApiDouble, provider: Provider
) -> None:
    may_go_on = threading.Event()

    def parts() -> Iterator[str]:
        yield sent("first")
        assert may_go_on.wait(30)
        yield sent("second")
        yield "data: [DONE]\n\n"

    provider.answer = lambda request: streaming(parts)
    run(api)
    api.invoke(rest_event({**CHAT, "stream": True}))
    answer = api.next_answer()
    assert answer.path == "/invocation/request-1/response"
    assert answer.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert answer.headers["content-type"] == "application/vnd.awslambda.http-integration-response"
    metadata, body = metadata_in(answer.take(b"first"))
    assert metadata["statusCode"] == 200
    assert metadata["headers"]["content-type"].startswith("text/event-stream")
    assert b"second" not in body
    assert not answer.is_complete.is_set()
    may_go_on.set()
    assert b"second" in answer.rest()
    assert answer.trailers == {}


def test_a_caller_who_leaves_ends_the_call_of_the_provider(
    api: RuntimeApiDouble, provider: Provider
) -> None:
    ended = threading.Event()
    count = 0

    def parts() -> Iterator[str]:
        nonlocal count
        try:
            for _ in range(3000):
                count += 1
                yield sent("word " * 100)
                time.sleep(0.01)
        finally:
            ended.set()

    provider.answer = lambda request: streaming(parts)
    stored_settings.put("gateway_limits", {"endpoints": {"chat": {"concurrent_calls": 1}}})
    try:
        run(api)
        api.leave_after = b"word"
        api.invoke(rest_event({**CHAT, "stream": True}))
        api.next_answer().take(b"word")
        assert ended.wait(20)
        assert count < 1500
        # The runtime lives, and the call is no longer open.
        api.leave_after = None
        provider.answer = openai
        api.invoke(rest_event(CHAT), "request-2")
        answer = api.next_answer()
        assert metadata_in(answer.rest())[0]["statusCode"] == 200
        assert answer.path == "/invocation/request-2/response"
    finally:
        stored_settings.delete("gateway_limits")


def test_an_answer_that_is_no_stream(api: RuntimeApiDouble, provider: Provider) -> None:
    run(api)
    for name, status in (("chat", 200), ("missing", 404)):
        api.invoke(rest_event({**CHAT, "model": name}))
        metadata, body = metadata_in(api.next_answer().rest())
        assert metadata["statusCode"] == status
        assert metadata["headers"]["content-type"] == "application/json"
        assert json.loads(body)


def test_the_http_api_gets_whole_answers_in_its_time(
    api: RuntimeApiDouble, provider: Provider
) -> None:
    remaining: list[int] = []

    def handler(event: Any, context: Any) -> Json:
        remaining.append(context.get_remaining_time_in_millis())
        return gateway_calls.app.handler(event, context)

    run(api, handler)
    event = {
        "version": "2.0",
        "rawPath": f"/gateway/{PATH}",
        "headers": {},
        "requestContext": {"http": {"method": "POST"}},
        "body": json.dumps({**CHAT, "stream": True}),
    }
    api.invoke(event)
    answer = api.next_answer()
    assert "lambda-runtime-function-response-mode" not in answer.headers
    whole = json.loads(answer.rest())
    assert (whole["statusCode"], whole["isBase64Encoded"]) == (200, False)
    assert whole["body"].endswith("data: [DONE]\n\n")
    api.invoke(rest_event(CHAT))
    api.next_answer().rest()
    assert 20_000 < remaining[0] <= 29_000
    assert 800_000 < remaining[1] <= 900_000


def test_an_error_within_a_stream_is_told_in_trailers(api: RuntimeApiDouble) -> None:
    def body() -> Iterator[bytes]:
        yield b"begun"
        raise KeyError("sk-secret")

    def handler(event: Any, context: Any) -> Json:
        return {"statusCode": 200, "headers": {}, "cookies": ["a=b"], "body": body()}

    run(api, handler)
    api.invoke(rest_event(CHAT))
    answer = api.next_answer()
    metadata, content = metadata_in(answer.rest())
    assert metadata == {"statusCode": 200, "headers": {}, "cookies": ["a=b"]}
    assert content == b"begun"
    assert answer.trailers["lambda-runtime-function-error-type"] == "KeyError"
    error = json.loads(base64.b64decode(answer.trailers["lambda-runtime-function-error-body"]))
    assert error == {"errorType": "KeyError", "errorMessage": "The request failed unexpectedly."}


def test_an_invocation_that_fails_does_not_end_the_runtime(api: RuntimeApiDouble) -> None:
    fails = True

    def handler(event: Any, context: Any) -> Json:
        if fails:
            raise ValueError("sk-secret")
        return {"statusCode": 200, "headers": {}, "body": "aGk=", "isBase64Encoded": True}

    run(api, handler)
    api.invoke({}, "request-1")
    answer = api.next_answer()
    assert answer.path == "/invocation/request-1/error"
    assert answer.headers["lambda-runtime-function-error-type"] == "ValueError"
    assert b"sk-secret" not in answer.rest()
    fails = False
    api.invoke(rest_event(CHAT), "request-2")
    assert metadata_in(api.next_answer().rest())[1] == b"hi"


def test_logins(api: RuntimeApiDouble, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind the HTTP API: what the REST API says about the caller decides, and no header."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    endpoint_id = endpoint("other", [model("m2", "openai", provider.url, model_name="gpt-4o")])
    for name in ("ann", "eve"):
        user = users.create(name, "", is_admin=False)
        if name == "ann":
            grants.put(user, "default", Grant(GATEWAY_ENDPOINT, endpoint_id, "USE"))
    run(api, handler)

    def status(authorizer: Any = None, **identity: str) -> int:
        event = rest_event({**CHAT, "model": "other"}, authorizer=authorizer, **identity)
        event["multiValueHeaders"]["X-Mlflow-User"] = ["ann"]
        api.invoke(event)
        return int(metadata_in(api.next_answer().rest())[0]["statusCode"])

    def named(name: str, **more: str) -> Json:
        about = {"username": name, "is_admin": "false", "method": "basic"}
        return {"principalId": "caller", "integrationLatency": 1, **about, **more}

    assert status(named("ann")) == 200
    assert status(named("eve")) == 403
    assert status(named("eve", is_admin="true")) == 200
    assert status({"principalId": "caller", "method": "basic", "login": "none"}) == 401
    assert status() == 401, "a REST API that asks nobody"
    assert status({"principalId": "caller"}) == 401
    assert status(userArn="arn:aws:iam::123456789012:user/ann") == 401, "signed, where none signs"
    assert len(provider.asked) == 2, "who is refused asks no provider"


def test_a_signed_request(
    api: RuntimeApiDouble, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = "arn:aws:iam::123456789012:user/ann"
    monkeypatch.setenv(AUTHENTICATION, "iam")
    monkeypatch.setenv("IAM_ADMINISTRATORS", arn)
    run(api, lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE))
    for identity, status in (({"userArn": arn}, 200), ({}, 401), ({"userArn": f"{arn}x"}, 403)):
        api.invoke(rest_event(CHAT, **identity))
        assert metadata_in(api.next_answer().rest())[0]["statusCode"] == status


def start(api: RuntimeApiDouble, handler: str) -> subprocess.Popen[bytes]:
    """Starts the runtime as Lambda's start script does."""
    functions = ROOT / "functions"
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "_HANDLER": handler,
        "LAMBDA_TASK_ROOT": str(functions),
        "PYTHONPATH": str(ROOT / "layers/core/python"),
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "TABLE_NAME": "none",
    }
    wrapper = functions / "gateway_calls" / "bootstrap"
    command = [str(wrapper), sys.executable, "/var/runtime/bootstrap.py"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_the_wrapper_starts_the_runtime(api: RuntimeApiDouble) -> None:
    process = start(api, "gateway_calls.app.handler")
    try:
        api.invoke(rest_event({}, "no/such/route"))
        metadata, _ = metadata_in(api.next_answer().rest())
        assert metadata["statusCode"] == 404
    finally:
        process.kill()
        process.communicate()


def test_a_function_that_cannot_be_imported_is_reported(api: RuntimeApiDouble) -> None:
    process = start(api, "gateway_calls.missing.handler")
    answer = api.next_answer()
    assert answer.path == "/init/error"
    assert answer.headers["lambda-runtime-function-error-type"] == "ModuleNotFoundError"
    process.communicate(timeout=30)
    assert process.returncode == 1


def test_both_apis_ask_a_provider_the_same(api: RuntimeApiDouble, provider: Provider) -> None:
    assert post(PATH, CHAT)[0] == 200
    run(api)
    api.invoke(rest_event(CHAT))
    api.next_answer().rest()
    first, second = provider.asked
    assert first.body == second.body
