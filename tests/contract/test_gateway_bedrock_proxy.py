"""Bedrock's own operations through the gateway's proxy, called by boto3."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EventStreamError

from tests.contract.bedrock_world import (
    ACCESS_KEY,
    BY_KEYS,
    KEYS,
    MODEL,
    SECRET_KEY,
    TOKEN,
    TURNS,
    bedrock_here,
    outputs_of,
    path_of,
    ready,
    traced,
)
from tests.contract.boto_client import bedrock_client
from tests.contract.conftest import Store
from tests.contract.gateway_world import KEY, budget, endpoint, guard, model
from tests.doubles.bedrock import frame, signer_of, stream
from tests.doubles.bedrock_models import chunk, counted, refusal, vector
from tests.doubles.providers import Asked, Provider, Told

Json = dict[str, Any]

CLAUDE = "eu.anthropic.claude-opus-4-5-20251101-v1:0"
ID = "anthropic.claude-opus-4-5-20251101-v1:0"
SAID: Json = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}
COST = (2095 * 5.5 + 20 * 6.875 + 30 * 0.55 + 503 * 27.5) / 1e6


@pytest.fixture
def bedrock(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    with bedrock_here(monkeypatch, tmp_path) as provider:
        yield provider


@pytest.mark.parametrize("name", [MODEL, CLAUDE, "chat"])
def test_converse(bedrock: Provider, name: str) -> None:
    """The endpoint's name stands for its model, also in an ARN."""
    ready("chat", CLAUDE if name == CLAUDE else MODEL)
    sent = MODEL if name == "chat" else name
    client = bedrock_client("chat")
    answer = client.converse(modelId=name, messages=TURNS, inferenceConfig={"maxTokens": 9})
    assert answer["output"]["message"]["content"] == [{"text": "echo: hello there"}]
    assert answer["usage"]["totalTokens"] == 20
    streamed = list(client.converse_stream(modelId=name, messages=TURNS)["stream"])
    texts = [event["contentBlockDelta"]["delta"]["text"] for event in streamed[1:-3]]
    assert "".join(texts) == "echo: hellothere"
    assert streamed[-1]["metadata"]["usage"] == answer["usage"]
    for request, operation in zip(bedrock.asked, ("converse", "converse-stream"), strict=True):
        assert request.path == f"/model/{path_of(sent)}/{operation}"
        assert signer_of(request, SECRET_KEY, TOKEN) == ("ASIAROLE", "eu-west-3")
        assert "AKIDOFNOBODY" not in str(request.headers)
    assert bedrock.asked[0].body == {"messages": TURNS, "inferenceConfig": {"maxTokens": 9}}


def test_invoke_model(bedrock: Provider) -> None:
    """Bytes of events as Bedrock sends them, and the tokens, also those of a cache."""
    tracked = ready("claude", CLAUDE, usage_tracking=True)
    client = bedrock_client("claude")
    call = {"modelId": CLAUDE, "body": json.dumps(SAID)}
    answer = client.invoke_model(**call)
    message = json.loads(answer["body"].read())
    assert (message["content"][0]["text"], answer["contentType"]) == (
        "echo: hi",
        "application/json",
    )
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-amzn-bedrock-input-token-count"] == "2095"
    streamed = client.invoke_model_with_response_stream(**call)
    assert streamed["contentType"] == "application/json"
    events = [json.loads(event["chunk"]["bytes"]) for event in streamed["body"]]
    assert events[0]["type"] == "message_start"
    assert "amazon-bedrock-invocationMetrics" in events[-1]
    for cost, tokens in traced(tracked):
        assert cost == pytest.approx(COST)
        assert tokens["cache_creation_input_tokens"] == 20
    assert len(traced(tracked)) == 2


def test_other_models(bedrock: Provider) -> None:
    """Tokens of a model that does not report them in its answer are in headers."""
    tracked = ready("titan", "amazon.titan-embed-text-v2:0", usage_tracking=True)
    client = bedrock_client("titan")
    for text in ("some words", "x"):
        body = json.dumps({"inputText": text, "dimensions": 256})
        answer = client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=body)
        assert json.loads(answer["body"].read())["embedding"] == vector(text, 256)
    (_, last), (cost, first) = traced(tracked)
    assert (first["input_tokens"], last["input_tokens"]) == (2, 1)
    assert cost == pytest.approx(2 * 0.02e-6)
    bedrock.answer = lambda _: Told(body=b"\x89PNG", content_type="image/png")
    answer = client.invoke_model(modelId="titan", body=json.dumps({"prompt": "a cat" * 100}))
    assert answer["body"].read() == b"\x89PNG"
    assert traced(tracked)[0][1]["input_tokens"] > 100


def test_tokens_are_counted(bedrock: Provider) -> None:
    """By the model's own ID, and for nothing."""
    tracked = ready("claude", CLAUDE, usage_tracking=True)
    client = bedrock_client("claude")
    for name in (CLAUDE, ID, "claude"):
        given: Json = {"converse": {"messages": TURNS}}
        assert client.count_tokens(modelId=name, input=given)["inputTokens"] == 1
    invoked = {"invokeModel": {"body": json.dumps(SAID)}}
    assert client.count_tokens(modelId=CLAUDE, input=invoked)["inputTokens"] == 2095
    assert {request.path for request in bedrock.asked} == {f"/model/{path_of(ID)}/count-tokens"}
    assert [tokens for _, tokens in traced(tracked)] == [{}] * 4


def test_other_logins(bedrock: Provider) -> None:
    """Each signs in its own way; headers of the caller reach Bedrock with none."""
    ready("keys", MODEL, KEYS, BY_KEYS)
    ready("bearer", MODEL, {"api_key": KEY}, {"aws_region_name": "us-east-2"})
    for name in ("keys", "bearer"):
        bedrock_client(name).converse(modelId=MODEL, messages=TURNS)
    signed, borne = bedrock.asked
    assert signer_of(signed, SECRET_KEY) == (ACCESS_KEY, "us-east-2")
    assert borne.headers["authorization"] == f"Bearer {KEY}"
    kept = {"authorization", "host", "content-type", "content-length", "accept-encoding"}
    kept |= {"user-agent", "x-amz-date"}
    assert (signed.headers.keys() | borne.headers.keys()) <= kept


def test_the_cheap_tier(bedrock: Provider) -> None:
    ready("claude", CLAUDE)
    client = bedrock_client("claude")
    client.invoke_model(modelId=CLAUDE, body=json.dumps(SAID), serviceTier="flex")
    (request,) = bedrock.asked
    assert request.headers["x-amzn-bedrock-service-tier"] == "flex"
    assert signer_of(request, SECRET_KEY, TOKEN)[0] == "ASIAROLE"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
        (408, "ModelTimeoutException"),
        (424, "ModelErrorException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_refusals_are_those_of_bedrock(bedrock: Provider, status: int, kind: str) -> None:
    ready("chat")
    client = bedrock_client("chat")
    bedrock.answer = lambda _: refusal(status, kind, "No.")
    for call in (client.converse, client.converse_stream):
        with pytest.raises(getattr(client.exceptions, kind), match="No\\.") as failed:
            call(modelId=MODEL, messages=TURNS)
        assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_spent_budget(bedrock: Provider) -> None:
    """Streams count, and boto3 is told to slow down."""
    ready("claude", CLAUDE)
    budget("GLOBAL", 1e-6)
    client = bedrock_client("claude")
    list(client.converse_stream(modelId=CLAUDE, messages=TURNS)["stream"])
    with pytest.raises(client.exceptions.ThrottlingException, match="Budget limit"):
        client.converse(modelId=CLAUDE, messages=TURNS)
    assert len(bedrock.asked) == 1


def test_a_stream_that_fails(bedrock: Provider) -> None:
    """Before its first event with a status, later with an exception within."""
    ready("chat")
    client = bedrock_client("chat")
    text = frame("contentBlockDelta", {"delta": {"text": "so"}, "contentBlockIndex": 0})
    for last, code, message in (
        (frame("throttlingException", {"message": "slow"}, "exception"), "throttling", "slow"),
        (
            frame("modelStreamErrorException", {"message": "x"}, "exception"),
            *("modelStreamError", "x"),
        ),
        (frame("messageStop", {})[:-1] + b"x", "internalServer", "cannot be decoded"),
        (frame("messageStop", {})[:-1], "internalServer", "cannot be decoded"),
        (b"", "internalServer", "ended before"),
        (b"\xff\xff\xff\xff" * 4, "internalServer", "cannot be decoded"),
    ):
        bedrock.answer = partial(_streamed, (text, last))
        events = iter(client.converse_stream(modelId=MODEL, messages=TURNS)["stream"])
        assert next(events)["contentBlockDelta"]["delta"]["text"] == "so"
        with pytest.raises(EventStreamError, match=message) as failed:
            next(events)
        assert failed.value.response["Error"]["Code"] == f"{code}Exception"
    began = chunk({"type": "message_start", "message": {}})
    bedrock.answer = partial(_streamed, (began,))
    streamed = client.invoke_model_with_response_stream(modelId=MODEL, body=b"{}")["body"]
    with pytest.raises(EventStreamError, match="ended before"):
        list(streamed)
    bedrock.answer = partial(
        _streamed, (frame("throttlingException", {"message": "slow"}, "exception"),)
    )
    with pytest.raises(client.exceptions.ThrottlingException, match="slow"):
        client.converse_stream(modelId=MODEL, messages=TURNS)


def _streamed(parts: tuple[bytes, ...], _: Asked) -> Told:
    return stream(*filter(None, parts))


def test_traces_tell_the_answers(bedrock: Provider) -> None:
    tracked = ready("claude", CLAUDE, usage_tracking=True)
    client = bedrock_client("claude")
    answer = client.converse(modelId=CLAUDE, messages=TURNS)
    list(client.converse_stream(modelId=CLAUDE, messages=TURNS)["stream"])
    streamed = client.invoke_model_with_response_stream(modelId=CLAUDE, body=json.dumps(SAID))
    list(streamed["body"])
    message, conversed, whole = outputs_of(tracked)
    assert whole["output"] == answer["output"]
    assert conversed["output"]["message"]["content"][0]["text"] == "echo: hellothere"
    assert conversed["usage"] == whole["usage"]
    assert message["content"][0]["text"] == "echo: hi"


def test_guardrails(bedrock: Provider) -> None:
    """Those of the server check whole answers; a stream that they would have to check is refused
    before Bedrock is asked."""
    endpoint_id = ready("guarded")
    rule = {"name": "short", "builtin_scorer_class": "ResponseLength"}
    limit = {"max_length": 3, "unit": "words"}
    guard(endpoint_id, {**rule, "builtin_scorer_pydantic_data": limit}, "AFTER")
    client = bedrock_client("guarded")
    assert client.converse(modelId=MODEL, messages=TURNS)["stopReason"] == "end_turn"
    long = [{"role": "user", "content": [{"text": "a b c d e"}]}]
    with pytest.raises(client.exceptions.ValidationException, match="blocked"):
        client.converse(modelId=MODEL, messages=long)
    bedrock.asked.clear()
    with pytest.raises(client.exceptions.ValidationException, match="checks answers"):
        client.converse_stream(modelId=MODEL, messages=TURNS)
    assert bedrock.asked == []


@pytest.mark.parametrize("stage", ["BEFORE", "AFTER"])
def test_a_guardrail_reads_the_fields_of_all_makers(bedrock: Provider, stage: str) -> None:
    endpoint_id = ready("guarded")
    rule = {"name": "short", "builtin_scorer_class": "ResponseLength"}
    limit = {"max_length": 3, "unit": "words"}
    guard(endpoint_id, {**rule, "builtin_scorer_pydantic_data": limit}, stage)
    client = bedrock_client("guarded")
    long = "far too many words"
    fields: dict[str, Any] = {
        "BEFORE": {
            **{"inputText": long, "prompt": long, "message": long, "texts": [long]},
            **{"text_prompts": [{"text": long}], "textToImageParams": {"text": long}},
            **{"singleEmbeddingParams": {"text": {"value": long}}, "text": {"inputText": long}},
            **{"search_prompt": long, "negative_prompt": long, "suffix": long},
            **{"textToVideoParams": {"text": long}, "virtualTryOnParams": {"maskPrompt": long}},
            **{"image": long, "unknown to us": [{"deep": {"value": long}}]},
        },
        "AFTER": {
            **{"generation": long, "results": [{"outputText": long}], "completion": long},
            **{"outputs": [{"text": long}], "generations": [{"text": long}], "text": long},
            "completions": [{"data": {"text": long}}],
        },
    }
    for name, value in fields[stage].items():
        told = {name: value} if stage == "AFTER" else {}
        bedrock.answer = partial(_answered, told)
        body = {} if told else {name: value}
        with pytest.raises(client.exceptions.ValidationException, match="blocked"):
            client.invoke_model(modelId="guarded", body=json.dumps(body))
    assert (bedrock.asked == []) == (stage == "BEFORE")


def test_a_guardrail_does_not_read_the_bytes_of_files(bedrock: Provider) -> None:
    endpoint_id = ready("guarded")
    rule = {"name": "short", "builtin_scorer_class": "ResponseLength"}
    limit = {"max_length": 40, "unit": "chars"}
    guard(endpoint_id, {**rule, "builtin_scorer_pydantic_data": limit}, "BEFORE")
    picture = {"image": {"format": "png", "source": {"bytes": bytes(99)}}}
    turns = [{"role": "user", "content": [picture, {"text": "what?"}]}]
    assert bedrock_client("guarded").converse(modelId="guarded", messages=turns)["output"]


def test_a_guardrail_does_not_read_settings_and_pictures(bedrock: Provider) -> None:
    endpoint_id = ready("guarded")
    rule = {"name": "short", "builtin_scorer_class": "ResponseLength"}
    limit = {"max_length": 40, "unit": "chars"}
    guard(endpoint_id, {**rule, "builtin_scorer_pydantic_data": limit}, "BEFORE")
    data = base64.b64encode(bytes(range(150))).decode()
    bodies: tuple[Json, ...] = (
        {"image": data, "mask": data, "prompt": "what?", "aspect_ratio": "16:9"},
        {"text": {"inputText": "what?"}, "mediaSource": {"base64String": data}},
        {"textToImageParams": {"text": "what?", "images": [data]}, "taskType": "x" * 50},
        {"prompt": "what?", "tools": [{"description": "x" * 50}], "anthropic_version": "x" * 50},
    )
    bedrock.answer = partial(_answered, {"completion": "that"})
    client = bedrock_client("guarded")
    for body in bodies:
        assert client.invoke_model(modelId="guarded", body=json.dumps(body))["body"].read()


def _answered(body: Json, _: Asked) -> Told:
    return Told(body=body)


def test_credentials_are_replaced(bedrock: Provider) -> None:
    """In whole answers, in events, and in what chunks hold in Base64."""
    ready("keys", MODEL, KEYS, BY_KEYS)
    client = bedrock_client("keys")
    text = f"my key is {SECRET_KEY}"
    told = frame("contentBlockDelta", {"delta": {"text": text}, "contentBlockIndex": 0})
    end = frame("messageStop", {"stopReason": "end_turn"})
    bedrock.answer = partial(_streamed, (told, end))
    first = next(iter(client.converse_stream(modelId=MODEL, messages=TURNS)["stream"]))
    assert first["contentBlockDelta"]["delta"]["text"] == "my key is [REDACTED]"
    bedrock.answer = partial(_streamed, (chunk({"completion": text, "n": "\x01"}),))
    streamed = client.invoke_model_with_response_stream(modelId=MODEL, body=b"{}")["body"]
    (inner,) = [json.loads(event["chunk"]["bytes"]) for event in streamed]
    assert inner == {"completion": "my key is [REDACTED]", "n": "\x01"}
    plain = {"bytes": base64.b64encode(text.encode()).decode()}
    bedrock.answer = partial(_streamed, (frame("chunk", plain),))
    streamed = client.invoke_model_with_response_stream(modelId=MODEL, body=b"{}")["body"]
    assert [event["chunk"]["bytes"] for event in streamed] == [b"my key is [REDACTED]"]
    bedrock.answer = lambda _: counted({"completion": text}, 1)
    answer = client.invoke_model(modelId=MODEL, body=b"{}")
    assert json.loads(answer["body"].read()) == {"completion": "my key is [REDACTED]"}
    slow = frame("throttlingException", {"message": text}, "exception")
    bedrock.answer = partial(_streamed, (told, slow))
    with pytest.raises(EventStreamError) as failed:
        list(client.converse_stream(modelId=MODEL, messages=TURNS)["stream"])
    assert SECRET_KEY not in str(failed.value.response)


def test_a_fallback(bedrock: Provider) -> None:
    """A request that names the endpoint is answered by the model that works."""
    first, second = (
        model(f"m{n}", "bedrock", model_name=name, secret=KEYS, auth_config=BY_KEYS)
        for n, name in enumerate((MODEL, CLAUDE))
    )
    endpoint("both", [first], [second])

    def only_claude(request: Asked) -> Told:
        if "anthropic" in request.path:
            return stream(frame("messageStop", {"stopReason": "end_turn"}))
        return refusal(404, "ResourceNotFoundException", "No.")

    bedrock.answer = only_claude
    client = bedrock_client("both")
    events = list(client.converse_stream(modelId="both", messages=TURNS)["stream"])
    assert events == [{"messageStop": {"stopReason": "end_turn"}}]
    assert len(bedrock.asked) == 2
