"""Anthropic's Messages API with Anthropic's models at Amazon Bedrock: the same messages, events and
errors as from Anthropic."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlcore.repos.gateway import configuration
from tests.contract.bedrock_world import MODEL as OTHERS_MODEL
from tests.contract.bedrock_world import SECRET_KEY, TOKEN, bedrock_here, ready, traced
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post, respond
from tests.contract.gateway_world import guard
from tests.doubles import detailed_anthropic
from tests.doubles.bedrock import frame, signer_of, stream
from tests.doubles.bedrock_models import chunk, refusal
from tests.doubles.providers import Asked, Provider, Told

Json = dict[str, Any]

MODEL = "eu.anthropic.claude-opus-4-5-20251101-v1:0"
ID = "anthropic.claude-opus-4-5-20251101-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-3:123456789012:application-inference-profile/a1b2c3"
SAID: Json = {"max_tokens": 100, "messages": [{"role": "user", "content": "Grüezi"}]}
TOOLS: Json = {"tools": [{"name": "now", "input_schema": {"type": "object", "properties": {}}}]}
BODY: Json = {"model": "claude", **SAID}
COST = (2095 * 5.5 + 20 * 6.875 + 30 * 0.55 + 503 * 27.5) / 1e6
"""Of an answer of the double, by the prices of the profile of several regions."""


@pytest.fixture
def bedrock(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    with bedrock_here(monkeypatch, tmp_path) as provider:
        ready("claude", MODEL, usage_tracking=True)
        yield provider


def asked_of_anthropic(body: Json) -> Any:
    return detailed_anthropic.answer(Asked("/v1/messages", {}, {**body, "model": MODEL}))


def assert_paid() -> None:
    """The only call counts all tokens, those of the cache at their own price."""
    (tracked,) = configuration.read("default").endpoints
    ((cost, tokens),) = traced(tracked)
    assert cost == pytest.approx(COST)
    assert tokens["cache_read_input_tokens"] == 30
    assert tokens["total_tokens"] == 2095 + 20 + 30 + 503


def messages(body: Json, **headers: str) -> tuple[int, str, str]:
    return post("anthropic/v1/messages", body, **headers)


@pytest.mark.parametrize("more", [{}, TOOLS])
def test_a_message(bedrock: Provider, more: Json) -> None:
    status, _, text = messages({**BODY, **more, "stream": False}, anthropic_version="2023-06-01")
    told = json.loads(text)
    expected = asked_of_anthropic({**SAID, **more}).body
    assert (status, told["content"], told["usage"]) == (200, expected["content"], expected["usage"])
    (request,) = bedrock.asked
    assert request.path == f"/model/{MODEL.replace(':', '%3A')}/invoke"
    assert request.body == {**SAID, **more, "anthropic_version": "bedrock-2023-05-31"}
    assert signer_of(request, SECRET_KEY, TOKEN) == ("ASIAROLE", "eu-west-3")
    assert "anthropic-version" not in request.headers
    assert_paid()


@pytest.mark.parametrize("more", [{}, TOOLS])
def test_a_stream(bedrock: Provider, more: Json) -> None:
    """The lines are those of Anthropic's API, without what Bedrock adds."""
    status, media_type, text = messages({**BODY, **more, "stream": True})
    assert (status, media_type) == (200, "text/event-stream; charset=utf-8")
    told = asked_of_anthropic({**SAID, **more, "stream": True})
    expected = "".join(map(str, told.parts))
    assert events_of(text) == [
        {**event, **({"message": {**event["message"], "model": "claude-opus-4-8-20250929"}})}
        if "message" in event
        else event
        for event in events_of(expected)
    ]
    assert [line for line in text.splitlines() if line.startswith("event: ")] == [
        line for line in expected.splitlines() if line.startswith("event: ")
    ]
    assert bedrock.asked[0].path.endswith("/invoke-with-response-stream")
    assert_paid()


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("betas", "tried"),
    [
        ("", [None]),
        ("context-1m-2025-08-07", [["context-1m-2025-08-07"]]),
        ("new-2026-11-01,", [["new-2026-11-01"]]),
        (
            "claude-code-20250219, interleaved-thinking-2025-05-14",
            [
                ["claude-code-20250219", "interleaved-thinking-2025-05-14"],
                ["interleaved-thinking-2025-05-14"],
            ],
        ),
        (
            "effort-2025-11-24,oauth-2025-04-20",
            [["effort-2025-11-24", "oauth-2025-04-20"], ["effort-2025-11-24"], None],
        ),
    ],
)
def test_betas(bedrock: Provider, betas: str, tried: list[Any], *, is_stream: bool) -> None:
    """As many as Bedrock accepts: Claude Code sends some that it does not."""
    status, _, text = messages({**BODY, "stream": is_stream}, anthropic_beta=betas)
    assert status == 200, text
    assert [request.body.get("anthropic_beta") for request in bedrock.asked] == tried


def test_a_beta_in_the_body(bedrock: Provider) -> None:
    body = {**BODY, "anthropic_beta": ["context-1m-2025-08-07", 5], "anthropic_version": "x"}
    assert messages(body)[0] == 200
    sent = bedrock.asked[0].body
    assert sent["anthropic_beta"] == ["context-1m-2025-08-07"]
    assert sent["anthropic_version"] == "bedrock-2023-05-31"


@pytest.mark.parametrize("name", [MODEL, ID, f"arn:aws:bedrock:eu-west-3::foundation-model/{ID}"])
def test_tokens_are_counted(bedrock: Provider, name: str) -> None:
    """By the ID of the model: Bedrock does not count by that of a profile."""
    ready("c", name)
    thinking = {"type": "enabled", "budget_tokens": 2048}
    body = {"model": "c", "messages": SAID["messages"], "thinking": thinking, **TOOLS}
    status, _, text = post("anthropic/v1/messages/count_tokens", body)
    assert (status, json.loads(text)) == (200, {"input_tokens": 2095})
    (request,) = bedrock.asked
    assert request.path == f"/model/{ID.replace(':', '%3A')}/count-tokens"
    counted = json.loads(base64.b64decode(request.body["input"]["invokeModel"]["body"]))
    assert counted["messages"] == SAID["messages"]
    assert counted["max_tokens"] > thinking["budget_tokens"]


@pytest.mark.parametrize(
    ("status", "kind", "told", "type_"),
    [
        (400, "ValidationException", 400, "invalid_request_error"),
        (403, "AccessDeniedException", 403, "permission_error"),
        (404, "ResourceNotFoundException", 404, "not_found_error"),
        (408, "ModelTimeoutException", 504, "api_error"),
        (424, "ModelErrorException", 500, "api_error"),
        (429, "ThrottlingException", 429, "rate_limit_error"),
        (500, "InternalServerException", 500, "api_error"),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_refusals_have_anthropics_form(
    bedrock: Provider, status: int, kind: str, told: int, type_: str, *, is_stream: bool
) -> None:
    bedrock.answer = lambda _: refusal(status, kind, "No.")._replace(
        headers={"x-amzn-ErrorType": kind, "retry-after": "30"}
    )
    answer = respond("POST", "anthropic/v1/messages", {**BODY, "stream": is_stream})
    assert answer["statusCode"] == told
    assert answer["headers"]["retry-after"] == "30"
    assert json.loads(answer["body"]) == {
        "detail": "No.",
        "type": "error",
        "error": {"type": type_, "message": "No."},
    }


def _streamed(parts: tuple[bytes, ...], _: Asked) -> Told:
    return stream(*parts)


def test_a_stream_that_fails(bedrock: Provider) -> None:
    """Before its first event with a status, later with an event that Anthropic's SDK raises."""
    began = {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}
    slow = frame("throttlingException", {"message": "slow"}, "exception")
    for parts in ((chunk(began), slow), (chunk(began),), (chunk(began), slow[:-1])):
        bedrock.answer = partial(_streamed, parts)
        status, _, text = messages({**BODY, "stream": True})
        first, last = events_of(text)
        assert (status, first, last["type"]) == (200, began, "error")
        assert "\nevent: error\n" in text
    bedrock.answer = lambda _: stream(slow)
    bedrock.asked.clear()
    status, _, text = messages({**BODY, "stream": True})
    assert (status, json.loads(text)["error"]["type"]) == (429, "rate_limit_error")
    assert len(bedrock.asked) == 3, "nothing was worked on, so it is sent again"


def test_a_guardrail_checks_a_stream(bedrock: Provider) -> None:
    endpoint_id = ready("guarded", MODEL)
    rule = {"name": "short", "builtin_scorer_class": "ResponseLength"}
    guard(
        endpoint_id,
        {**rule, "builtin_scorer_pydantic_data": {"max_length": 3, "unit": "words"}},
        "AFTER",
    )
    body = {**BODY, "model": "guarded", "stream": True}
    assert messages(body)[0] == 200
    assert bedrock.asked[0].path.endswith("/invoke")
    long = {"role": "user", "content": "a b c d e f"}
    status, _, text = messages({**body, "messages": [long]})
    assert (status, "blocked" in json.loads(text)["error"]["message"]) == (400, True)


def test_which_models_are_anthropics(bedrock: Provider) -> None:
    """An application's profile does not say; Bedrock does."""
    bedrock.answer = lambda _: refusal(400, "ValidationException", "No.")
    for number, (name, status) in enumerate(
        ((PROFILE, 400), (OTHERS_MODEL, 501), ("amazon.nova-pro-v1:0", 501))
    ):
        ready(f"e{number}", name)
        assert messages({**BODY, "model": f"e{number}"})[0] == status
    assert len(bedrock.asked) == 1


def test_tools_may_be_about_s3(bedrock: Provider) -> None:
    used = {"type": "tool_use", "id": "t", "name": "read", "input": {"s3_uri": "s3://b/k"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    turns = [
        *SAID["messages"],
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    assert messages({**BODY, "messages": turns, "service_tier": "auto"})[0] == 200
    assert messages({**BODY, "service_tier": "priority"})[0] == 403


def test_a_stream_without_events(bedrock: Provider) -> None:
    bedrock.answer = partial(_streamed, (frame("initial-response", {}),))
    status, _, text = messages({**BODY, "stream": True})
    assert (status, json.loads(text)["error"]["type"]) == (502, "api_error")


def test_no_file_in_s3_is_read(bedrock: Provider) -> None:
    """Anthropic's models read none, but a profile may be that of another maker's model."""
    ready("profile", PROFILE)
    source = {"s3Location": {"uri": "s3://bucket/x"}}
    turns = [{"role": "user", "content": [{"document": {"source": source}}]}]
    for is_stream in (False, True):
        body = {**BODY, "model": "profile", "messages": turns, "stream": is_stream}
        status, _, text = messages(body)
        assert (status, json.loads(text)["error"]["type"]) == (403, "permission_error")
    assert bedrock.asked == []
