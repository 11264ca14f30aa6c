"""The gateway's proxy: any path of a provider, the body as it is, with the endpoint's credentials
or those of a program that brings its user's own."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER
from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.gateway_requests import ask, events_of, post
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.doubles.providers import Asked, Told, anthropic, events, gemini, openai, serving

SAID = [{"role": "user", "content": "hello there"}]
CHAT = {"model": "gpt-own", "messages": SAID}


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture
def provider(store: Store) -> Any:
    with serving(openai) as running:
        endpoint("chat", [model("m", "openai", f"{running.url}/v1", model_name="gpt-x")])
        yield running


def test_the_body_is_sent_as_it_is(provider: Any) -> None:
    status, _, text = post("proxy/chat/v1/chat/completions", CHAT, x_stainless_lang="python")
    assert (status, json.loads(text)["system_fingerprint"]) == (200, "fp_1")
    (request,) = provider.asked
    assert (request.path, request.body) == ("/v1/chat/completions", CHAT)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-stainless-lang"] == "python"


def test_a_stream_is_known_by_its_type(store: Store) -> None:
    """Gemini's path asks for a stream, the body does not."""
    with serving(gemini) as running, serving(anthropic) as claude:
        endpoint("g", [model("m", "gemini", f"{running.url}/v1beta")])
        endpoint("c", [model("n", "anthropic", f"{claude.url}/v1")])
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        status, media_type, text = post("proxy/g/v1beta/models/x:streamGenerateContent", body)
        assert (status, media_type) == (200, "text/event-stream; charset=utf-8")
        assert events_of(text)[0]["usageMetadata"]["totalTokenCount"] == 13
        assert running.asked[0].path == "/v1beta/models/x:streamGenerateContent"
        message = {"model": "claude-own", "max_tokens": 5, "messages": SAID, "stream": True}
        assert "event: message_stop\n" in post("proxy/c/v1/messages", message)[2]
        assert claude.asked[0].path == "/v1/messages"


def test_what_the_provider_refuses(provider: Any) -> None:
    provider.answer = lambda _: Told(404, {"error": {"message": "no such path"}})
    status, _, text = post("proxy/chat/v1/nothing", {})
    assert (status, json.loads(text)) == (
        404,
        {"detail": "no such path", "error": {"message": "no such path"}},
    )


@pytest.mark.parametrize("path", ["../admin", "v1/../../admin", "./v1", "v1/.."])
def test_no_path_leads_out_of_the_root(provider: Any, path: str) -> None:
    assert post(f"proxy/chat/{path}", {})[0] == 400
    assert provider.asked == []


def echoes_headers(request: Asked) -> Told:
    return Told(body={"headers": request.headers})


@pytest.mark.parametrize("agent", ["claude-cli/2.1 (external)", "codex_cli_rs/0.4", "GeminiCLI/1"])
@pytest.mark.parametrize("path", ["proxy/chat/v1/x", "openai/v1/chat/completions"])
def test_programs_with_a_subscription_bring_their_credentials(
    provider: Any, agent: str, path: str
) -> None:
    provider.answer = echoes_headers
    own = {"authorization": "Bearer caller's", "x_mlflow_authorization": "Basic login"}
    body = {"model": "chat", "messages": SAID}
    for headers, expected in (
        ({**own, "user_agent": agent}, "Bearer caller's"),
        ({"user_agent": agent}, f"Bearer {KEY}"),
        ({**own, "user_agent": "python"}, f"Bearer {KEY}"),
    ):
        answer = json.loads(post(path, body, **headers)[2])
        assert provider.asked[-1].headers["authorization"] == expected
        seen = expected.replace(KEY, "[REDACTED]")
        assert answer["headers"]["authorization"] == seen, "the caller's own stay as they are"
        assert "x-mlflow-authorization" not in answer["headers"]


def test_a_login_is_never_sent_to_a_provider(
    provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password for this server in ``authorization`` stays here, whatever program sends it."""
    provider.answer = echoes_headers
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "USE")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)
    login = {"authorization": "Basic login-of-ann", "user_agent": "claude-cli/2.1"}
    for path in ("proxy/chat/v1/x", "openai/v1/chat/completions"):
        status, _, text = ask(
            "POST",
            path,
            {"model": "chat", "messages": SAID},
            handler=handler,
            caller=named("ann"),
            headers=login,
        )
        assert status == 200
        assert "login-of-ann" not in text
        assert provider.asked[-1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("path", ["proxy/chat/v1/x", "openai/v1/chat/completions"])
def test_headers_of_the_way_are_never_sent_to_a_provider(provider: Any, path: str) -> None:
    """Above all the word that CloudFront adds, with which any address could pass for it."""
    provider.answer = echoes_headers
    secret = "word-of-cloudfront"
    names = (ORIGIN_HEADER, "x-mlflow-experiment-id", "x-forwarded-for", "forwarded", "x-real-ip")
    headers = dict.fromkeys((*names, "cookie", "via", "x-amz-security-token"), secret)
    text = ask("POST", path, {"model": "chat", "messages": SAID}, headers=headers)[2]
    assert secret not in text
    assert provider.asked[-1].headers["authorization"] == f"Bearer {KEY}"


def test_who_may_use_the_proxy(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path names the endpoint; a body that names another changes nothing."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)
    for permission, expected in (("READ", 403), ("USE", 200)):
        monkeypatch.setenv("DEFAULT_PERMISSION", permission)
        for name, status in (("chat", expected), ("none", 403)):
            answer = ask(
                "POST",
                f"proxy/{name}/v1/chat/completions",
                {**CHAT, "endpoint_name": "chat"},
                handler=handler,
                caller=named("ann"),
            )
            assert answer[0] == status
    assert len(provider.asked) == 1
    assert ask("POST", "proxy/chat/v1/x", {}, handler=handler, caller={"lambda": {}})[0] == 401


def test_other_paths_of_the_sdks(store: Store) -> None:
    """Gemini's version 1, OpenAI's list of models, embeddings by model, counting of tokens."""
    with serving(gemini) as g, serving(openai) as o:
        endpoint("g", [model("m", "gemini", f"{g.url}/v1beta", model_name="gemini-x")])
        endpoint("chat", [model("n", "openai", f"{o.url}/v1", model_name="gpt-x")])
        own = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        assert post("gemini/v1/models/g:generateContent", own)[0] == 200
        assert ask("GET", "openai/v1/models") == ask("GET", "mlflow/v1/models")
        by_model = post("mlflow/v1/embeddings", {"model": "chat", "input": "ab"})
        assert by_model == post("chat/mlflow/invocations", {"input": "ab"})
    with serving(lambda _: Told(body={"input_tokens": 14})) as claude:
        endpoint("c", [model("o", "anthropic", f"{claude.url}/v1", model_name="claude-x")])
        counted = post("anthropic/v1/messages/count_tokens", {"model": "c", "messages": SAID})
        assert (counted[0], json.loads(counted[2])) == (200, {"input_tokens": 14})
        assert claude.asked[0].path == "/v1/messages/count_tokens"
        assert claude.asked[0].body == {"model": "claude-x", "messages": SAID}


def test_a_cut_stream_of_anthropic_says_so(store: Store) -> None:
    """With an event that Anthropic's client reads, and no other."""
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}
    with serving(lambda _: events(start, named=True, done=False)) as claude:
        endpoint("c", [model("n", "anthropic", f"{claude.url}/v1")])
        body = {"model": "x", "max_tokens": 5, "messages": SAID, "stream": True}
        text = post("proxy/c/v1/messages", body)[2]
    assert text.endswith('"message": "The provider\'s stream ended before its message did."}}\n\n')
    assert text.count("event: error\n") == 1


def packed(content: bytes, encoding: str) -> tuple[int, str]:
    event = {
        "version": "2.0",
        "rawPath": "/gateway/proxy/chat/v1/chat/completions",
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "content-encoding": encoding},
        "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
        "isBase64Encoded": True,
        "body": base64.b64encode(content).decode(),
    }
    answer = gateway_calls.app.handler(event, None)
    return answer["statusCode"], answer["body"]


def test_compressed_bodies(provider: Any) -> None:
    plain = json.dumps(CHAT).encode()
    for encoding, content in (
        ("gzip", gzip.compress(plain)),
        ("deflate", zlib.compress(plain)),
        (" GZIP ", gzip.compress(plain)),
        ("zstd", zstd.compress(plain)),
        ("identity", plain),
    ):
        assert packed(content, encoding)[0] == 200
        assert provider.asked[-1].body == CHAT
        assert "content-encoding" not in provider.asked[-1].headers
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    # A frame that says that its reader needs a window of 128 MB.
    log: dict[int, int] = {zstd.CompressionParameter.window_log: 27}
    compressor = zstd.ZstdCompressor(options=log)
    wide = compressor.compress(plain) + compressor.flush()
    calls = len(provider.asked)
    for encoding, content, status in (
        ("gzip", bomb, 413),
        ("gzip", plain, 400),
        ("gzip", gzip.compress(plain)[:-9], 400),
        ("deflate", b"", 400),
        ("zstd", zstd.compress(b" " * (64 * 1024 * 1024)), 413),
        ("zstd", plain, 400),
        ("zstd", zstd.compress(plain)[:-3], 400),
        ("zstd", wide, 400),
        ("br", plain, 400),
        ("gzip, gzip", gzip.compress(gzip.compress(plain)), 400),
    ):
        assert packed(content, encoding)[0] == status, encoding
    assert len(provider.asked) == calls
