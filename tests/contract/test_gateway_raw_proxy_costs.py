"""What requests through the gateway's proxy cost whose bodies or answers are no chats, and what
callers try in order to pay less."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlcore.gateway.budgets import read_spending
from mlcore.ids import now_ms
from mlcore.repos.gateway import budgets
from mlcore.repos.settings import stored_settings
from tests.contract.conftest import Store
from tests.contract.gateway_world import allow_local, budget, endpoint, model
from tests.contract.raw_provider import FORM, FORM_TYPE, always, answers
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


def test_what_is_read_later_counts(provider: Provider) -> None:
    """What can be a model's text costs as much as if it were written now, although no answer says
    so; what describes a file or a batch costs nothing."""
    budget("GLOBAL", 100.0)
    written, read = 0.6e-6, 0.15e-6
    speech = b'{"input": "%b"}' % (b"x" * 400)
    lines = form_of(('name="file"; filename="a.jsonl"', b'{"a": "text"}\n' * 400))
    form = {"content-type": FORM_TYPE}
    background = 70 * read + 80 * written
    costs: tuple[tuple[str, str, bytes | None, Mapping[str, str], float, float], ...] = (
        ("GET", "batches/b1", None, NO_HEADERS, 0.0, 0.0),
        ("DELETE", "files/f1", None, NO_HEADERS, 0.0, 0.0),
        ("GET", "files/f1/content", None, NO_HEADERS, 140 * written, 140 * written),
        ("GET", "responses/background", None, NO_HEADERS, background, background),
        ("GET", "responses/r1", None, NO_HEADERS, 100 * written, 200 * written),
        ("POST", "audio/speech", speech, NO_HEADERS, 100 * read, 110 * read),
        ("POST", "files", lines, form, 1400 * read, 1430 * read),
    )
    for method, path, body, headers, least, most in costs:
        if path == "files":
            provider.answer = lambda _: Told(body={"id": "f1", "object": "file"})
        before = _spent()
        assert send(method, f"chat/v1/{path}", body, headers=headers).status == 200
        cost = _spent() - before
        assert least * 0.99 <= cost <= most * 1.01, path


def form_of(*parts: tuple[str, bytes], boundary: bytes = b"b") -> bytes:
    """Parts with the parameters of their disposition."""
    return (
        b"".join(
            b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
            % (boundary, parameters.encode(), value)
            for parameters, value in parts
        )
        + b"--%b--\r\n" % boundary
    )


NAMED = form_of(('name="model"', b"gpt-4o"))
SLOW = "multipart/form-data" + ";a= " * 5000
"""A pattern that can match the blanks in two ways would take longer than the universe."""


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (NAMED, FORM_TYPE),
        (form_of(("name=model", b"gpt-4o")), "Multipart/Form-Data; charset=utf-8; Boundary=b"),
        (form_of(('NAME="Model"', b" gpt-4o "), boundary=b"a-b"), f'{FORM_TYPE[:-1]}"a-b";'),
        (form_of(('name="model"', b"gpt-4o"), ('name="model"', b"gpt-4o-mini")), FORM_TYPE),
        (form_of(('name="model"', b"gpt-4o-mini"), ('name="model[]"', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="model"; filename="m \\" ü"', b"gpt-4o")), FORM_TYPE),
        (form_of(("name=\"model\"; filename*=utf-8''m%22", b"gpt-4o")), FORM_TYPE),
        (form_of(('name="a"', b""), ('name="model"\r\nContent-Type: x', b"gpt-4o")), FORM_TYPE),
        (b'{"model": "gpt-4o"}', "application/octet-stream"),
        (b'\n {"model": "gpt-4o"}', "audio/x"),
        ('{"model": "gpt-4o"}'.encode("utf-16"), "application/octet-stream"),
        (b'{"requests": [{"params": {"model": "gpt-4o"}}]}', "application/json"),
    ],
)
def test_a_dear_model_cannot_be_hidden(provider: Provider, content: bytes, kind: str) -> None:
    """However a form or another body names it."""
    budget("GLOBAL", 100.0)
    usage = {"input_tokens": 1000, "output_tokens": 1000, "total_tokens": 2000}
    provider.answer = lambda _: Told(body={"usage": usage})
    answer = send("POST", "chat/v1/images/edits", content, headers={"content-type": kind})
    assert answer.status == 200
    assert _spent() == pytest.approx(1000 * (2.5e-6 + 10e-6))
    assert provider.asked[-1].raw in {content, json.dumps(provider.asked[-1].body).encode()}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (FORM, "multipart/form-data"),
        (FORM, "multipart/form-data; boundary="),
        (FORM, "multipart/form-data; boundary=b; boundary=c"),
        (FORM, "multipart/form-data; boundary=c; Boundary=b"),
        (FORM, "multipart/form-data; x=y; boundary*=utf-8''b"),
        (FORM, 'multipart/form-data; boundary="a\\b"'),
        (FORM, 'multipart/form-data; x="; boundary=c; y="; boundary=b'),
        (NAMED, "multipart/mixed; boundary=b"),
        (NAMED, 'multipart/related; type="application/json"; boundary=b'),
        (NAMED, SLOW),
        (b"--b" * 1003, FORM_TYPE),
        (b"--b--", FORM_TYPE),
        (b"preamble\r\n" + NAMED, FORM_TYPE),
        (NAMED + b"epilogue", FORM_TYPE),
        (NAMED.removesuffix(b"--b--\r\n"), FORM_TYPE),
        (NAMED + NAMED, FORM_TYPE),
        (NAMED.replace(b"\r\n", b"\n"), FORM_TYPE),
        (NAMED.replace(b"\r\n\r\n", b"\n\n"), FORM_TYPE),
        (form_of(("x" * 20_000, b"")), FORM_TYPE),
        (form_of(('x="' + ";" * 4000, b"")), FORM_TYPE),
        (form_of(("name*=utf-8''m%6fdel", b"gpt-4o")), FORM_TYPE),
        (form_of((f"name*{'1' * 4000}=model", b"gpt-4o")), FORM_TYPE),
        (form_of(("name*=idna''x", b"gpt-4o")), FORM_TYPE),
        (form_of(('name="m\\odel"', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="m%6fdel"', b"gpt-4o")), FORM_TYPE),
        (form_of(("name*0=mo; name*1=del", b"gpt-4o")), FORM_TYPE),
        (form_of(('\r\n name="model"', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="model"; name="x"', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="x"; name="model"', b"gpt-4o")), FORM_TYPE),
        (form_of(('x="--b"; name="model"', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="model"\r\nX: --b', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="x"\r\nno header\r\nX: y', b"gpt-4o")), FORM_TYPE),
        (form_of(('name="x"\r\nContent-Disposition: form-data; name="model"', b"a")), FORM_TYPE),
        (form_of(('name="x"\nContent-Disposition: form-data; name="model"', b"a")), FORM_TYPE),
        (form_of(('name="model"\r\nContent-Transfer-Encoding: base64', b"Z3B0")), FORM_TYPE),
        (b"--b\r\nContent-Type: x\r\n\r\nvalue\r\n--b--\r\n", FORM_TYPE),
        (b"--b\r\n\xc3\xbc: x\r\n\r\nvalue\r\n--b--\r\n", FORM_TYPE),
    ],
)
@pytest.mark.timeout(60)
def test_a_form_that_readers_read_differently(
    provider: Provider, content: bytes, kind: str
) -> None:
    """Is refused: the provider could find another model in it."""
    answer = send("POST", "chat/v1/images/edits", content, headers={"content-type": kind})
    assert answer.status == 400
    assert provider.asked == []


def test_what_is_sent_counts_if_the_provider_reports_nothing(provider: Provider) -> None:
    """Requests of a batch and parts of an upload; not what is no input of a model."""
    budget("GLOBAL", 100.0)
    large = b"x" * 40_000
    models = "v1beta/models/gpt-4o-mini"
    batch = b'{"requests": ["%b"]}' % large
    fields = form_of(('name="prompt"', large), ('name="image"; filename="a.png"', large * 2))
    named = form_of(('name="data"; filename="a"\r\nContent-Type: audio/mpeg', large))
    listed: list[tuple[str, str, bytes | None, str, Any, float]] = [
        ("POST", "v1/messages/batches", batch, "", {"id": "b1", "type": "message_batch"}, 10_000),
        ("POST", f"{models}:batchGenerateContent", batch, "", {"name": "batches/1"}, 10_000),
        ("POST", "v1/messages/count_tokens", batch, "", {"input_tokens": 10_000}, 0),
        ("POST", "v1/responses/input_tokens", batch, "", {"input_tokens": 10_000}, 0),
        ("POST", "v1beta/models/x:countTokens?a=b", batch, "", {"totalTokens": 10_000}, 0),
        ("POST", "v1/messages/batches?x=/count_tokens", batch, "", {}, 10_000),
        ("POST", "v1/uploads/u1/parts", named, FORM_TYPE, {"object": "upload.part"}, 10_000),
        ("POST", "v1/uploads/audio/images", large, "audio/mpeg", {}, 10_000),
        ("POST", "v1/images/edits", fields, FORM_TYPE, {"data": []}, 10_000),
        ("POST", "v1/audio/transcriptions", large, "audio/mpeg", {"text": "a" * 9999}, 0),
        ("GET", "v1/models", None, "", _list_of({"object": "model", "id": "m"}), 0),
        ("GET", "v1/models", None, "", {"data": [{"type": "model"}] * 90}, 0),
        ("GET", "v1beta/models", None, "", {"models": [{"name": "models/x"}] * 90}, 0),
        ("GET", "v1beta/models/x", None, "", {"name": "models/x", "version": "1" * 99}, 0),
        ("GET", "v1/batches", None, "", _list_of({"object": "batch", "id": "b"}), 0),
        ("GET", "v1/chat/completions", None, "", _list_of({"object": "chat.completion"}), -1),
        ("GET", "v1/x", None, "", {"data": [{"object": "model"}, {"text": "a" * 99}]}, -1),
    ]
    for method, path, body, kind, answer, tokens in listed:
        provider.answer = partial(always, Told(body=answer))
        before = _spent()
        plain, _, query = path.partition("?")
        headers = {"content-type": kind} if kind else NO_HEADERS
        assert send(method, f"chat/{plain}", body, headers=headers, query=query).status == 200
        spent = (_spent() - before) / 0.15e-6
        if tokens < 0:
            assert spent > 0, path
        else:
            assert spent == pytest.approx(tokens, rel=0.01), path


def _list_of(member: Json) -> Json:
    return {"object": "list", "data": [member] * 90, "has_more": False}


def test_a_spent_budget_and_a_limit(provider: Provider) -> None:
    """They refuse every verb, before the provider is asked."""
    stored_settings.put("gateway_limits", {"endpoints": {"chat": {"requests_per_day": 1}}})
    assert send("GET", "chat/v1/files").status == 200
    assert send("GET", "chat/v1/files").status == 429
    stored_settings.delete("gateway_limits")
    budget("GLOBAL", 0.00001)
    assert send("GET", "chat/v1/files/f1/content").status == 200
    for method, body in (("GET", None), ("DELETE", None), ("POST", FORM)):
        refused = send(method, "chat/v1/files/f1", body, headers={"content-type": FORM_TYPE})
        assert refused.status == 429
        assert "Budget limit exceeded" in refused.json["detail"]
    assert len(provider.asked) == 2


def _spent() -> float:
    return read_spending(budgets.find_all(), now_ms())[0]
