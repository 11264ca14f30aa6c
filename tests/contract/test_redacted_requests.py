"""What rules of redaction that apply to providers do to calls of the gateway: guardrails, traces,
scopes, files, and rules that cannot be read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mlcore.db import capacity, keys
from mlcore.db.table import table
from mlcore.gateway import guarded_calls
from mlcore.models.settings import Config
from mlcore.repos.settings import cached_setting, stored_settings
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, guard, judge, model
from tests.contract.private_texts import stored
from tests.contract.raw_requests import send
from tests.contract.recording_provider import anything, received
from tests.contract.sealing import seal_here
from tests.contract.ways_to_providers import JSON
from tests.doubles.providers import Asked, Provider, Told, anthropic, openai, saying, serving

Json = dict[str, Any]

SECRET: Final = "ann.secret@mail.example"
MAIL: Final[Json] = {"entities": ["email"], "apply_to": ["providers"]}
SAID: Final = [{"role": "user", "content": f"I am {SECRET}"}]
CHAT: Final = {"model": "chat", "messages": SAID}
PICTURE: Final = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n\xff" * 29).decode()


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[Path]:
    with artifacts_in(tmp_path / "files") as folder:
        yield folder


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(anything) as made:
        yield made


def rules(*values: Json) -> None:
    stored_settings.put("redaction", {"rules": list(values)})


def ready(provider: Provider, name: str = "chat", kind: str = "openai", **more: Any) -> str:
    return endpoint(name, [model(f"m-{name}", kind, f"{provider.url}/v1")], **more)


def content(provider: Provider) -> str:
    return str(provider.asked[-1].body["messages"][-1]["content"])


def judging(request: Asked) -> Told:
    """A judge that finds everything bad, and a sanitizer that writes the private text."""
    if "violates a policy" in json.dumps(request.body):
        return saying(json.dumps({"messages": SAID}))(request)
    return saying(json.dumps({"result": "no", "rationale": f"It names {SECRET}"}))(request)


def test_guardrails_ask_and_write_nothing_private(provider: Provider, store: Store) -> None:
    """Also about answers, and although the rules name the guarded endpoint alone."""
    chat = ready(provider)
    provider.answer = saying(f"You are {SECRET}")
    rules({**MAIL, "endpoints": [chat]})
    with serving(judging) as aside:
        ready(aside, "judge")
        cleaner = ready(aside, "cleaner")
        scorer = judge("mails", "Is {{ inputs }} free of names?", "judge")
        guard(chat, scorer, "BEFORE", "SANITIZATION", action_endpoint_id=cleaner)
        status, _, text = post("mlflow/v1/chat/completions", CHAT)
        assert status == 200
        assert SECRET in text, "answers are not redacted"
        assert len(aside.asked) == 2
        scorer = judge("answers", "Is {{ outputs }} free of names?", "judge")
        guard(chat, scorer, "AFTER")
        assert post("mlflow/v1/chat/completions", CHAT)[0] == 400
        assert len(aside.asked) == 5
        assert "[REDACTED email]" in json.dumps(aside.asked[-1].body)
        assert SECRET not in received(aside)
        assert post("mlflow/v1/chat/completions", {**CHAT, "model": "judge"})[0] == 200
        assert SECRET in received(aside), "the rules are not those of the judge's endpoint"
    assert content(provider) == "I am [REDACTED email]"
    assert SECRET not in received(provider)


def test_jobs_and_judges_of_the_server(provider: Provider) -> None:
    ready(provider)
    rules(MAIL)
    for judges in (False, True):
        guarded_calls.complete_chat("default", "chat", {"messages": SAID}, judges=judges)
        assert content(provider) == "I am [REDACTED email]"


@pytest.mark.parametrize("path", ["mlflow/v1/chat/completions", "openai/v1/chat/completions"])
def test_the_trace_has_what_the_provider_got(
    provider: Provider, store: Store, files: Path, path: str
) -> None:
    ready(provider, usage_tracking=True)
    tracing = {"entities": ["ip_address"]}
    rules(MAIL, tracing)
    said = [{"role": "user", "content": f"{SECRET} at 192.0.2.77"}]
    assert post(path, {**CHAT, "messages": said})[0] == 200
    assert content(provider) == "[REDACTED email] at 192.0.2.77"
    kept = stored(store, files)
    assert "[REDACTED email] at [REDACTED ip address]" in kept
    assert SECRET not in kept


def test_scopes(provider: Provider) -> None:
    first, second = (ready(provider, name) for name in ("chat", "other"))
    for scope, hidden in (
        ({"endpoints": [first]}, ("chat",)),
        ({"endpoints": [second]}, ("other",)),
        ({"workspaces": ["default"]}, ("chat", "other")),
        ({"workspaces": ["team"]}, ()),
        ({"experiments": ["12"]}, ()),
        ({"apply_to": ["traces"]}, ()),
    ):
        rules({**MAIL, **scope})
        for name in ("chat", "other"):
            assert post("mlflow/v1/chat/completions", {**CHAT, "model": name})[0] == 200
            assert (SECRET not in content(provider)) == (name in hidden), (scope, name)


def test_rules_for_an_experiment(provider: Provider, store: Store) -> None:
    experiment = store.api.new_experiment("calls")
    ready(provider, usage_tracking=True, experiment_id=experiment)
    rules({**MAIL, "experiments": [experiment]})
    assert post("mlflow/v1/chat/completions", CHAT)[0] == 200
    assert content(provider) == "I am [REDACTED email]"


def test_rules_for_providers_do_not_concern_traces(provider: Provider, store: Store) -> None:
    """Uploads that rules of traces forbid are allowed."""
    from mlcore.repos.settings import redaction  # noqa: PLC0415

    rules(MAIL)
    assert not redaction.has_rules()
    assert redaction.every_rule() is None
    assert redaction.redactor("default", "1", "e") is None


def test_parts_that_are_joined_on_the_way(provider: Provider) -> None:
    """Anthropic gets one text of the system."""
    ready(provider, "claude", "anthropic")
    provider.answer = anthropic
    rules(MAIL)
    halves = SECRET.split("@")
    system = [{"type": "text", "text": f"{halves[0]}@"}, {"type": "text", "text": halves[1]}]
    said = [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
    for more in ({}, {"stream": True}):
        body = {"model": "claude", "messages": said, **more}
        assert post("mlflow/v1/chat/completions", body)[0] == 200
        assert provider.asked[-1].body["system"] == "[REDACTED email]"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": PICTURE}, "text": "x"},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": PICTURE[22:]}},
        {"type": "file", "file": {"file_data": PICTURE}},
        {"type": "document_url", "document_url": f" {PICTURE}"},
        {"type": "images", "images": [PICTURE[22:]]},
    ],
)
def test_pictures_are_refused_or_sent_as_they_are(provider: Provider, part: Json) -> None:
    ready(provider)
    body = {"model": "chat", "messages": [{"role": "user", "content": [part]}]}
    digits = {"pattern": "[A-Z]{2}|[0-9]{2}", "replacement": "-", "apply_to": ["providers"]}
    for path in ("mlflow/v1/chat/completions", "openai/v1/chat/completions"):
        rules(MAIL)
        status, _, text = post(path, body)
        assert status == 400
        assert "cannot search" in json.loads(text)["detail"]
        assert not provider.asked
        rules({**MAIL, "unsearchable": "send"}, MAIL)
        assert post(path, body)[0] == 400, "one of two rules forbids it"
        rules({**MAIL, "unsearchable": "send"})
        assert post(path, body)[0] == 200
        assert provider.asked[-1].body["messages"][-1]["content"] == [part]
        rules({"fields": ["**.other"], "apply_to": ["providers"]})
        assert post(path, body)[0] == 200, "a rule on fields searches nothing"
        provider.asked.clear()
    rules({**digits, "unsearchable": "send"})
    answer = send(
        "POST", "chat/v1/x", json.dumps({"9": [part["type"], part]}).encode(), headers=JSON
    )
    assert answer.status == 200
    assert PICTURE[40:] in provider.asked[-1].raw.decode(), "it is not searched as a text"


def test_what_only_the_provider_reads_is_sent_back_to_it(provider: Provider) -> None:
    ready(provider)
    rules({"entities": ["aws_key"], "apply_to": ["providers"]})
    state = base64.urlsafe_b64encode(bytes(range(97, 256)) * 9).decode()
    item = {"type": "reasoning", "encrypted_content": state, "thoughtSignature": state}
    body = {"model": "chat", "input": [item, {"role": "user", "content": "hi"}]}
    assert post("openai/v1/responses", body)[0] == 200
    assert provider.asked[-1].body["input"][0] == item


def test_short_data_is_searched_as_a_text(provider: Provider) -> None:
    ready(provider)
    rules({"pattern": "4111[0-9]{12}", "apply_to": ["providers"], "unsearchable": "send"})
    card = "4111111111111111"
    call = {"type": "tool_use", "input": {"data": card, "mimeType": "a/b", "bytes": card}}
    body = {"a": [call, {"data": card, "mimeType": "text/plain"}, {"source": {"bytes": card}}]}
    assert post("proxy/chat/v1/x", body)[0] == 200
    assert card not in received(provider)
    rules(MAIL)
    body = {"content": [{"type": "tool_use", "input": {"data": "hello123", "mimeType": "a/b"}}]}
    assert post("proxy/chat/v1/x", body)[0] == 200, "arguments of a tool are no files"


def test_a_match_in_the_program_does_not_change_who_pays(provider: Provider) -> None:
    ready(provider, "claude", "anthropic")
    rules(MAIL)
    headers = {**JSON, "user-agent": f"claude-cli/2 ({SECRET})", "authorization": "Bearer own"}
    body = json.dumps({"model": "claude", "messages": [{"role": "user", "content": "hi"}]})
    answer = send("POST", "anthropic/v1/messages", body.encode(), headers=headers, root="")
    assert answer.status == 400
    assert not provider.asked


def test_tokens_are_texts(provider: Provider) -> None:
    ready(provider)
    rules(MAIL)
    for path, body in (
        ("mlflow/v1/embeddings", {"model": "chat", "input": [1, 2]}),
        ("openai/v1/embeddings", {"model": "chat", "input": [[1, 2], [3]]}),
        ("proxy/chat/v1/completions", {"prompt": [[7]]}),
    ):
        assert post(path, body)[0] == 400, path
    lines = b'{"body": {"input": [1, 2]}}\n{}\n'
    kind = {"content-type": "application/octet-stream"}
    assert send("POST", "chat/v1/files", lines, headers=kind).status == 400
    assert not provider.asked
    rules({**MAIL, "unsearchable": "send"})
    assert post("mlflow/v1/embeddings", {"model": "chat", "input": [1, 2]})[0] == 200


def test_fields(provider: Provider) -> None:
    ready(provider)
    rules(
        {"fields": ["inputs.metadata.user", "**.password"], "apply_to": ["providers"]},
        {"fields": ["inputs.prompt"], "apply_to": ["providers"], "replacement": "-"},
    )
    secret = {"Pass_word": {"a": "x1-plain"}}
    call = {"name": "f", "arguments": json.dumps(secret)}
    said = [
        *SAID,
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]},
    ]
    body = {"model": "chat", "messages": said, "metadata": {"user": "x1-plain", "use": "kept"}}
    assert post("openai/v1/chat/completions", body)[0] == 200
    got = provider.asked[-1].body
    assert got["metadata"] == {"user": "[REDACTED]", "use": "kept"}
    called = got["messages"][1]["tool_calls"][0]["function"]
    assert json.loads(called["arguments"]) == {"Pass_word": "[REDACTED]"}
    form = (
        b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nx1-plain\r\n'
        b'--b\r\nContent-Disposition: form-data; name="metadata[user]"\r\n\r\nx1-plain\r\n'
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n\xff\r\n--b--'
    )
    kind = {"content-type": "multipart/form-data; boundary=b"}
    assert send("POST", "chat/v1/x", form, headers=kind).status == 200
    sent = provider.asked[-1].raw
    assert b"x1-plain" not in sent
    assert sent.count(b"\r\n\r\n-\r\n") == 1
    assert b"\r\n\r\n\xff\r\n" in sent


def test_a_replacement_ends_no_part_of_a_form(provider: Provider) -> None:
    ready(provider)
    rules({**MAIL, "replacement": "--bound", "unsearchable": "send"})
    form = (
        b'--bound\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' + SECRET.encode()
    ) + b"\r\n--bound--\r\n"
    kind = {"content-type": "multipart/form-data; boundary=bound"}
    assert send("POST", "chat/v1/x", form, headers=kind).status == 400
    assert not provider.asked


def test_a_chat_that_is_none_any_more(provider: Provider) -> None:
    ready(provider)
    for pattern in ("^user$", "messages", "hello"):
        rules({"pattern": pattern, "apply_to": ["providers"]})
        body = {"model": "chat", "messages": [{"role": "user", "content": "hello"}], "stop": ["a"]}
        status, _, text = post("mlflow/v1/chat/completions", body)
        assert status == (400 if pattern == "messages" else 200)
    rules({"fields": ["inputs.messages"], "apply_to": ["providers"]})
    status, _, text = post("mlflow/v1/chat/completions", CHAT)
    assert status == 400
    assert "redaction" in text
    assert SECRET not in text
    rules({"fields": ["inputs.**"], "apply_to": ["providers"]})
    assert post("mlflow/v1/embeddings", {"model": "chat", "input": SECRET})[0] == 200
    assert SECRET not in received(provider)


def test_logins_of_programs_are_no_matches_of_rules_for_them(provider: Provider) -> None:
    ready(provider, "claude", "anthropic")
    token = "Bearer sk-ant-oat01-0123456789abcdefghijk"
    rules({"entities": ["bearer_token", "email"], "apply_to": ["providers"]})
    headers = {**JSON, "user-agent": "claude-cli/2", "authorization": token, "x-note": token}
    body = json.dumps({"model": "claude", "messages": [{"role": "user", "content": token}]})
    answer = send(
        "POST", "anthropic/v1/messages", body.encode(), headers=headers, root="", caller=None
    )
    assert answer.status == 200
    got = provider.asked[-1]
    assert got.headers["authorization"] == token
    assert "x-note" not in got.headers
    assert got.body["messages"][0]["content"] == "[REDACTED bearer token]"


FORMS: Final = (
    ("mlflow/v1/chat/completions", CHAT, "error"),
    ("openai/v1/responses", {"model": "chat", "input": SECRET}, "error"),
    ("anthropic/v1/messages", {**CHAT, "max_tokens": 9}, "type"),
    ("gemini/v1/models/chat:generateContent", {"contents": [{"parts": []}]}, "error"),
    ("proxy/chat/v1/chat/completions", CHAT, "error"),
    ("mlflow/v1/embeddings", {"model": "chat", "input": SECRET}, "error"),
)


@pytest.mark.parametrize("value", ['{"rules": [{"mood": "sad"}]}', '{"rules": 7}'])
def test_rules_that_cannot_be_read_let_nothing_out(provider: Provider, value: str) -> None:
    ready(provider)
    key = keys.config("redaction")
    item = Config(PK=key.pk, SK=key.sk, key="redaction", value=value, updated_at=1, version=1)
    table.put(item.serialize())
    cached_setting.forget("redaction")
    for path, body, field in FORMS:
        for _ in range(2):
            status, _, text = post(path, body)
            assert status in {429, 503}, path
            assert field in json.loads(text), path
            assert SECRET not in text
    assert not provider.asked


def test_a_request_that_takes_too_long_is_refused(provider: Provider) -> None:
    ready(provider)
    rules({"pattern": "(a|a)+$", "apply_to": ["providers"]})
    said = [{"role": "user", "content": "a" * 60 + "b" + SECRET}] * 3
    status, _, _ = post("openai/v1/chat/completions", {"model": "chat", "messages": said})
    assert status == 400
    assert not provider.asked


def test_the_rules_cost_no_round_trip(provider: Provider) -> None:
    ready(provider)

    def cost() -> int:
        assert post("mlflow/v1/chat/completions", CHAT)[0] == 200
        measured = capacity.last_measurement()
        assert measured is not None
        return measured.round_trips

    costs = []
    for value in ({"rules": []}, {"rules": [MAIL]}):
        stored_settings.put("redaction", value)
        cached_setting.forget("gateway_limits")
        costs.append((cost(), cost(), cost()))
    assert costs == [(3, 2, 2), (3, 2, 2)], "the setting comes with that of limits"
    cached_setting.forget("redaction")
    assert (cost(), cost()) == (3, 2)


def test_openai_answers_as_without_rules(provider: Provider) -> None:
    """A request without a private text is sent as it came."""
    ready(provider)
    provider.answer = openai
    body = {**CHAT, "messages": [{"role": "user", "content": "no name, 1.50 €"}], "seed": 7}
    bodies = []
    for value in ({"rules": []}, {"rules": [MAIL]}):
        stored_settings.put("redaction", value)
        assert post("openai/v1/chat/completions", body)[0] == 200
        bodies.append(provider.asked[-1].raw)
    assert bodies[0] == bodies[1]
