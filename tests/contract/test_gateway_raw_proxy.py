"""The gateway's proxy with what is no POST of JSON: other verbs, forms with files, answers of
bytes; and what attackers try with them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.logins import named
from tests.contract.raw_provider import FORM, FORM_TYPE, SPEECH, always, answers
from tests.contract.raw_requests import NO_HEADERS, send
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, Told, serving

Json = dict[str, Any]


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(answers) as running:
        endpoint("chat", [model("m", "openai", f"{running.url}/v1", model_name="gpt-4o-mini")])
        yield running


def test_verbs(provider: Provider) -> None:
    """As they are, with the query, the endpoint's key, and no body."""
    for method in ("GET", "DELETE"):
        answer = send(method, "chat/v1/files/f1", query="after=a%20b&limit=2")
        assert answer.status == 200
        request = provider.asked[-1]
        assert (request.method, request.path) == (method, "/v1/files/f1?after=a%20b&limit=2")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.raw == b""
        assert "content-type" not in request.headers
    assert answer.json == {"id": "f1", "object": "file", "deleted": True}
    assert send("POST", "chat/v1/batches/b1/cancel").status == 200
    assert (provider.asked[-1].method, provider.asked[-1].raw) == ("POST", b"")


def test_a_form_arrives_as_it_was_sent(provider: Provider) -> None:
    form = {"content-type": FORM_TYPE}
    assert send("POST", "chat/v1/audio/transcriptions", FORM, headers=form).status == 200
    request = provider.asked[-1]
    assert (request.raw, request.headers["content-type"]) == (FORM, FORM_TYPE)
    assert request.headers["content-length"] == str(len(FORM))
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_an_answer_of_bytes(provider: Provider) -> None:
    answer = send("POST", "chat/v1/audio/speech", b'{"model": "tts-1", "input": "hi"}')
    assert (answer.status, answer.body) == (200, SPEECH)
    assert answer.headers["content-type"] == "audio/mpeg"


def test_a_large_answer_is_sent_in_parts(provider: Provider) -> None:
    large = bytes(5 * 1024 * 1024)
    provider.answer = lambda _: Told(body=large, content_type="video/mp4")
    event = {
        "version": "2.0",
        "rawPath": "/gateway/proxy/chat/v1/videos/v1/content",
        "headers": {},
        "requestContext": {"http": {"method": "GET"}, "requestId": "test"},
    }

    class Context:
        streams = True

    answer = gateway_calls.app.handler(event, Context())
    assert b"".join(answer["body"]) == large
    provider.answer = lambda _: Told(body=bytes(17 * 1024 * 1024), content_type="video/mp4")
    assert send("GET", "chat/v1/videos/v1/content").status == 502


def test_a_page_of_a_provider_does_not_run_here(provider: Provider) -> None:
    answer = send("GET", "chat/v1/files/f1/page")
    assert answer.headers["content-disposition"] == "attachment"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "../admin",
        "v1/../../admin",
        "./v1",
        "v1/..",
        "v1/files/../../../x",
        "..",
        "v1/./x",
        "..;/admin",
        "v1/..;x=1/admin",
        ".;/v1",
        "v1/..;",
        "batch",
        "/Batch;x/v1",
        "v1/realtime/client_secrets",
    ],
)
def test_no_path_leads_out_of_the_root(provider: Provider, method: str, path: str) -> None:
    assert send(method, f"chat/{path}").status == 400
    assert provider.asked == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "/other.example/v1/files",
        "//other.example/x",
        "@other.example/x",
        "v1\\..\\..\\admin",
        "%2e%2e/admin",
        "..%2fadmin",
        "http://other.example/x",
        "v1/files?x#y",
        "v1/files\r\nHost: other.example\r\n\r\n",
        "v1/files HTTP/1.1",
    ],
)
def test_no_path_leads_to_another_host(provider: Provider, method: str, path: str) -> None:
    """Each is one path of the provider, percent-encoded; API Gateway has decoded it once."""
    answer = send(method, f"chat/{path}")
    assert answer.status in {200, 400}
    if answer.status == 200:
        (request,) = provider.asked
        assert request.path.startswith("/")
        assert not request.path.startswith("/../")
        assert request.headers["host"] == provider.url.removeprefix("http://")
        assert not any(character in request.path for character in "\r\n \\#?")


@pytest.mark.parametrize("query", ["a=b c", "a\r\nX-Evil: 1", "a=\x00", "a=ü"])
def test_a_query_that_is_not_encoded(provider: Provider, query: str) -> None:
    assert send("GET", "chat/v1/files", query=query).status == 400
    assert provider.asked == []


def test_headers_of_the_callers_connection_stay_here(provider: Provider) -> None:
    own = {
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
        "x-kept": "1",
        "host": "other.example",
        "content-length": "99999",
        "transfer-encoding": "chunked",
        "te": "trailers",
        "upgrade": "h2c",
        "expect": "100-continue",
        "range": "bytes=0-1",
        "proxy-authorization": "Basic caller's",
        "authorization": "Bearer caller's",
        "cookie": "session=caller's",
        "content-type": FORM_TYPE,
    }
    assert send("POST", "chat/v1/files", FORM, headers=own).status == 200
    (request,) = provider.asked
    assert request.raw == FORM
    assert request.headers["x-kept"] == "1"
    assert request.headers["host"] == provider.url.removeprefix("http://")
    assert "caller's" not in str(request.headers)
    for name in ("x-hop", "transfer-encoding", "te", "upgrade", "expect", "range"):
        assert name not in request.headers


def test_connection_removes_nothing_of_the_endpoints(provider: Provider) -> None:
    """The key and the organization are sent, whatever headers the caller lists."""
    config_ = {"organization": "org-endpoint"}
    url = f"{provider.url}/v1"
    endpoint("org", [model("o", "openai", url, model_name="gpt-4o-mini", auth_config=config_)])
    listed = "Authorization, openai-organization,content-type, host, x-hop"
    for path in ("v1/chat/completions", "v1/files"):
        headers = {"connection": listed, "x-hop": "1", "openai-organization": "org-callers"}
        assert send("POST", f"org/{path}", b'{"a": 1}', headers=headers).status == 200
        request = provider.asked[-1]
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["openai-organization"] == "org-endpoint"
        assert request.headers["content-type"] == "application/json"
        assert "x-hop" not in request.headers


def test_no_post_becomes_another_verb(provider: Provider) -> None:
    """Who may not delete could do so by a header or a parameter that names the verb."""
    names = ("x-http-method-override", "x-http-method", "x-method-override")
    headers = dict.fromkeys(names, "DELETE")
    assert send("POST", "chat/v1/files/f1", b"{}", headers=headers).status == 200
    (request,) = provider.asked
    assert not set(names) & set(request.headers)
    for query in (
        "$httpMethod=DELETE",
        "a=b&%24HTTPMETHOD=DELETE",
        "a;$httpMethod=DELETE",
        "$httpHeaders=X-HTTP-Method-Override%3ADELETE",
        "$CT=multipart/mixed",
    ):
        assert send("POST", "chat/v1/files/f1", b"{}", query=query).status == 400
    assert len(provider.asked) == 1
    assert send("POST", "chat/v1/files/f1", b"{}", query="$alt=json&x=%24y").status == 200


def test_a_body_that_is_not_whole(provider: Provider) -> None:
    """Dropped on its way, or of a verb without one."""
    assert send("POST", "chat/v1/files", headers={"content-length": "10"}).status == 400
    assert send("GET", "chat/v1/files", b"{}").status == 400
    assert send("DELETE", "chat/v1/files/f1", b"{}").status == 400
    assert send("GET", "chat/v1/files", headers={"content-length": "10"}).status == 400
    assert send("POST", "chat/v1/files", FORM).status == 400, "no form without its type"
    assert provider.asked == []


def test_other_verbs(provider: Provider) -> None:
    for method in ("PUT", "TRACE", "CONNECT"):
        answer = send(method, "chat/v1/files")
        assert (answer.status, answer.json) == (405, {"detail": "Method Not Allowed"})
    assert provider.asked == []


def test_a_change_of_what_is_stored(provider: Provider) -> None:
    """As Google's SDK changes when a cache ends. No model is named, and no other verb either."""
    body = b'{"ttl": "600s"}'
    sent = {"content-type": "application/json", "x-http-method-override": "DELETE"}
    path = "chat/v1beta/cachedContents/c1"
    assert send("PATCH", path, body, headers=sent, query="updateMask=ttl").status == 200
    request = provider.asked[-1]
    assert (request.method, request.path) == ("PATCH", "/v1beta/cachedContents/c1?updateMask=ttl")
    assert (request.body, request.headers["authorization"]) == ({"ttl": "600s"}, f"Bearer {KEY}")
    assert "x-http-method-override" not in request.headers
    assert send("PATCH", path).status == 200
    assert provider.asked[-1].raw == b""
    count = len(provider.asked)
    for content, kind in ((FORM, FORM_TYPE), (b"\0", "application/octet-stream"), (b"[", "")):
        assert send("PATCH", path, content, headers={"content-type": kind}).status == 400
    assert send("PATCH", "chat/../x", body, headers=sent).status == 400
    assert send("PATCH", path, body, headers=sent, query="$httpMethod=DELETE").status == 400
    assert len(provider.asked) == count


def test_credentials_in_bytes_are_replaced(provider: Provider) -> None:
    for kind in ("application/jsonl", "text/plain", "audio/mpeg", "application/octet-stream"):
        content = f'\x00{KEY}\n{{"key": "{KEY}"}}\n'.encode()
        told = Told(body=content, content_type=kind)
        provider.answer = partial(always, told)
        answer = send("GET", "chat/v1/files/f1/content")
        assert answer.status == 200
        assert KEY.encode() not in answer.body
        assert answer.body.count(b"[REDACTED]") == 2


def test_a_credential_with_a_line_break(provider: Provider) -> None:
    """As a private key has them."""
    key = f"-----BEGIN {KEY[:9]}\nMIIEvQIBADANBg\n-----END"
    url = f"{provider.url}/v1"
    endpoint("lines", [model("l", "openai", url, secret={"api_key": KEY, "private_key": key})])
    for content in (f"a {key} b", json.dumps({"key": key}), f"{{}}\n{key}\n"):
        provider.answer = partial(always, Told(body=content.encode(), content_type="text/x"))
        answer = send("GET", "lines/v1/files/f1/content")
        assert answer.status == 200
        assert b"MIIEvQ" not in answer.body
        assert answer.body.count(b"[REDACTED]") == 1


RIGHTS: dict[str, tuple[int, int]] = {"READ": (403, 403), "USE": (200, 403), "EDIT": (200, 200)}
"""Statuses of a call of a model, and of a request for what the provider stores, by permission."""
STORED = (
    *("v1/files", "v1/files/f1", "v1/files/f1/content", "v1/batches", "v1/responses/r1"),
    *("v1/models/ft:x", "v1/files/v1/models", "files/models", "v1/models/", "v1//models"),
    *("V1/models", "v1/models;/files", "v1/models?/files", "v1/Models"),
)


def test_who_may_use_it(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without USE nobody reads, writes, deletes, or learns whether the endpoint exists; and who may
    only use the endpoint cannot read or delete what others stored with its key."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)
    form = {"content-type": FORM_TYPE}
    calls = (
        ("POST", "v1/files", FORM, form, 0, ""),
        ("GET", "v1/models", None, NO_HEADERS, 0, ""),
        ("GET", "v1beta/models", None, NO_HEADERS, 0, "pageSize=5"),
        ("HEAD", "v1/files", None, NO_HEADERS, 1, ""),
        ("GET", "v1/files", None, NO_HEADERS, 1, "x=/v1/models"),
        ("DELETE", "v1/models", None, NO_HEADERS, 1, ""),
        *(("GET", path, None, NO_HEADERS, 1, "") for path in STORED),
        *(("DELETE", path, None, NO_HEADERS, 1, "") for path in STORED),
        *(("PATCH", path, b'{"ttl": "1s"}', NO_HEADERS, 1, "") for path in STORED),
    )
    for permission, statuses in RIGHTS.items():
        monkeypatch.setenv("DEFAULT_PERMISSION", permission)
        for method, path, body, headers, right, query in calls:
            provider.asked.clear()
            more: Json = {"headers": headers, "handler": handler, "query": query}
            for name, expected in (("chat", statuses[right]), ("none", 403)):
                answer = send(method, f"{name}/{path}", body, caller=named("ann"), **more)
                assert answer.status == expected, (permission, method, path)
            nobody = send(method, f"chat/{path}", body, caller={"lambda": {}}, **more)
            assert nobody.status == 401
            assert len(provider.asked) == (statuses[right] == 200), (permission, method, path)
