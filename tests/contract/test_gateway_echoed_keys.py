"""A provider that repeats the credentials of a request shows them to no caller: neither in answers,
nor in streams, headers, traces and logs."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import gateway_calls.app
from mlcore import aws_clients
from mlcore.db.signature import Credentials
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import span_packs
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post, respond
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.raw_requests import send
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles import bedrock
from tests.doubles.providers import Asked, Told, anthropic, gemini, openai, serving

Json = dict[str, Any]

SAID: Final = [{"role": "user", "content": "hello there"}]
CONTENTS: Final = [{"role": "user", "parts": [{"text": "hello there"}]}]
BODY: Final = {"messages": SAID, "contents": CONTENTS, "input": "hello there", "max_tokens": 9}

ANSWERS: Final = {"openai": openai, "anthropic": anthropic, "gemini": gemini}
PATHS: Final = {
    "openai": [
        ("mlflow/v1/chat/completions", {}),
        ("mlflow/v1/chat/completions", {"stream": True}),
        ("mlflow/v1/embeddings", {}),
        ("openai/v1/chat/completions", {}),
        ("openai/v1/chat/completions", {"stream": True}),
        ("openai/v1/embeddings", {}),
        ("openai/v1/responses", {}),
        ("proxy/chat/v1/chat/completions", {}),
        ("proxy/chat/v1/chat/completions", {"stream": True}),
    ],
    "anthropic": [
        ("mlflow/v1/chat/completions", {}),
        ("mlflow/v1/chat/completions", {"stream": True}),
        ("anthropic/v1/messages", {}),
        ("anthropic/v1/messages", {"stream": True}),
        ("proxy/chat/v1/messages", {"stream": True}),
    ],
    "gemini": [
        ("mlflow/v1/chat/completions", {}),
        ("mlflow/v1/chat/completions", {"stream": True}),
        ("gemini/v1beta/models/chat:generateContent", {}),
        ("gemini/v1beta/models/chat:streamGenerateContent", {}),
        ("proxy/chat/v1beta/models/chat:streamGenerateContent", {}),
    ],
}


@pytest.fixture(autouse=True)
def local_providers(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


def echoing(answer: Callable[[Asked], Told], cut: int | None) -> Callable[[Asked], Told]:
    """A provider that says its request's headers wherever it would say what it was told.

    Args:
        cut: the parts in which the network brings the answer are of so many bytes.
    """

    def echo(request: Asked) -> Told:
        response = answer(request)
        shown = json.dumps(json.dumps(request.headers))[1:-1]
        if response.parts:
            text = "".join(str(part) for part in response.parts)
            content = text.replace("there", shown).encode()
        else:
            body = json.dumps({**response.body, "debug": request.headers})
            content = body.replace("there", shown).replace("fp_1", KEY).encode()
        size = cut or len(content)
        parts = tuple(content[start : start + size] for start in range(0, len(content), size))
        return response._replace(parts=parts, body=None)

    return echo


def texts_of_traces(endpoint_id: str) -> str:
    experiment = str(configuration.read("default").endpoints[endpoint_id].experiment_id)
    owners = (span_packs.Owner("default", experiment, i["trace_id"]) for i in infos(experiment))
    return "".join(
        line if isinstance(line, str) else line.decode()
        for owner in owners
        for _, line in span_packs.read(owner)
    )


@pytest.mark.parametrize("cut", [None, 7])
@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_that_repeat_the_key(
    kind: str, cut: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(echoing(ANSWERS[kind], cut)) as provider:
        version = "v1beta" if kind == "gemini" else "v1"
        made = model("m", kind, f"{provider.url}/{version}")
        endpoint_id = endpoint("chat", [made], usage_tracking=True)
        for path, more in PATHS[kind]:
            status, _, text = post(path, {"model": "chat", **BODY, **more})
            assert status == 200, (path, text)
            assert KEY in json.dumps(provider.asked[-1].headers)
            assert KEY not in text, path
            if "embeddings" not in path:
                assert "[REDACTED]" in text, path
        traced = texts_of_traces(endpoint_id)
        assert "hello" in traced
        assert KEY not in traced
        assert KEY not in caplog.text


def test_a_key_in_several_parts_of_a_stream_is_in_no_trace() -> None:
    """A model says a key token by token. What the caller gets is what the model said, as with any
    text that it may spell in its own way; the trace joins the parts."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [
        {**head, "choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]}
        for part in ("the key: ", KEY[:9], KEY[9:], " it was")
    ]
    parts = tuple(f"data: {json.dumps(delta)}\n\n" for delta in deltas)
    with serving(lambda _: Told(parts=parts, content_type="text/event-stream")) as provider:
        made = model("m", "openai", f"{provider.url}/v1")
        endpoint_id = endpoint("chat", [made], usage_tracking=True)
        for path in ("mlflow/v1/chat/completions", "openai/v1/chat/completions"):
            assert post(path, {"model": "chat", **BODY, "stream": True})[0] == 200
        traced = texts_of_traces(endpoint_id)
    assert traced.count("the key: [REDACTED] it was") == 2
    assert KEY not in traced


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("status", [301, 400, 429, 500])
def test_refusals_and_their_headers(status: int, *, is_stream: bool) -> None:
    def refuse(request: Asked) -> Told:
        login = request.headers["authorization"]
        body = {"error": {"message": f"not this: {login}"}}
        return Told(status, body, headers={"Retry-After": login, "Location": f"/{login}"})

    with serving(refuse) as provider:
        made = model("m", "openai", f"{provider.url}/v1")
        endpoint_id = endpoint("chat", [made], usage_tracking=True)
        for path, _ in PATHS["openai"]:
            event = {"model": "chat", **BODY, "stream": is_stream}
            answer = called(gateway_calls.app.handler, "POST", f"/gateway/{path}", event)
            assert answer.status == (502 if status == 301 else status)
            assert KEY not in json.dumps([answer.body, dict(answer.headers)])
        assert KEY not in texts_of_traces(endpoint_id)


@pytest.mark.parametrize("content_type", ["text/plain", f"text/{KEY}", "text/html", "audio/mpeg"])
def test_answers_of_other_types(content_type: str) -> None:
    with serving(lambda _: Told(body=f"<b>{KEY}</b>", content_type=content_type)) as provider:
        endpoint("chat", [model("m", "openai", f"{provider.url}/v1")])
        answer = respond("POST", "proxy/chat/v1/debug", {})
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, True)
    assert base64.b64decode(answer["body"]) == b'"<b>[REDACTED]</b>"'
    assert KEY not in str(answer["headers"])


def test_traces_hold_no_bytes() -> None:
    """They tell what was called, and how much was sent and answered."""
    with serving(lambda _: Told(body=b"\x00answered", content_type="audio/mpeg")) as provider:
        made = [model("m", "openai", f"{provider.url}/v1")]
        endpoint_id = endpoint("chat", made, usage_tracking=True)
        disposition = b"Content-Disposition: form-data; name=file; filename=a"
        body = b"--b\r\n%b\r\n\r\nuploaded\r\n--b--\r\n" % disposition
        form = "multipart/form-data; boundary=b"
        sent = send("POST", "chat/v1/audio/x", body, headers={"content-type": form}, query="a=b")
        assert sent.status == 200
        assert send("DELETE", "chat/v1/files/f1").status == 200
    traced = texts_of_traces(endpoint_id).replace("\\", "")
    for told in ("POST", "v1/audio/x", form, f'"bytes": {len(body)}', "DELETE", "v1/files/f1"):
        assert told in traced
    assert '"content_type": "audio/mpeg", "bytes": 9' in traced
    assert not any(text in traced for text in ("uploaded", "answered", "a=b"))


SECRET_KEY, TOKEN = "8sEcReT/key+of=models", "t0ken//of+a+role=="


@pytest.mark.parametrize(
    ("secret", "auth_config"),
    [
        ({"api_key": KEY}, {"auth_mode": "api_key", "aws_region_name": "eu-west-1"}),
        (
            {
                "aws_access_key_id": "AKIDCALLEROFMODELS",
                "aws_secret_access_key": SECRET_KEY,
                "aws_session_token": TOKEN,
            },
            {"auth_mode": "access_keys", "aws_region_name": "eu-west-1"},
        ),
        ({}, {"auth_mode": "default_chain", "aws_region_name": "eu-west-1"}),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_bedrock(
    secret: Json, auth_config: Json, monkeypatch: pytest.MonkeyPatch, *, is_stream: bool
) -> None:
    """The saved keys, and those of the server's own role."""
    own = Credentials("ASIAROLEOFTHESERVER", SECRET_KEY, TOKEN)
    monkeypatch.setattr(aws_clients, "process_credentials", lambda: own)
    credentials = [KEY, SECRET_KEY, TOKEN, "AKIDCALLEROFMODELS", "ASIAROLEOFTHESERVER"]

    def echo(request: Asked) -> Told:
        echoed = " ".join((json.dumps(request.headers), *credentials))
        used = {"inputTokens": 1, "outputTokens": 1}
        if not request.path.endswith("-stream"):
            message = {"role": "assistant", "content": [{"text": echoed}]}
            body = {"output": {"message": message}, "stopReason": "end_turn", "usage": used}
            text = json.dumps(body).replace("/", "\\/")
            return Told(parts=tuple(text[at : at + 9] for at in range(0, len(text), 9)))
        frames = (
            bedrock.frame("contentBlockDelta", {"delta": {"text": echoed}, "contentBlockIndex": 0})
            + bedrock.frame("messageStop", {"stopReason": "end_turn"})
            + bedrock.frame("metadata", {"usage": used})
        )
        return bedrock.stream(*(frames[at : at + 9] for at in range(0, len(frames), 9)))

    with serving(echo) as provider:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url)
        made = model("m", "bedrock", secret=secret, auth_config=auth_config)
        endpoint_id = endpoint("chat", [made], usage_tracking=True)
        body = {"model": "chat", "messages": SAID, "stream": is_stream}
        status, _, text = post("mlflow/v1/chat/completions", body)
        assert (status, "[REDACTED]" in text) == (200, True)
        answered = json.dumps(events_of(text)) if is_stream else text
        used = (*secret.values(),) or tuple(filter(None, own))
        for value in used:
            for shown in (answered, texts_of_traces(endpoint_id)):
                assert value not in shown.replace("\\/", "/")
