"""What attackers try with Bedrock's own operations at the gateway's proxy: other models, other
operations, other objects, and no rights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import users
from tests.contract.bedrock_world import MODEL, TURNS, bedrock_here, path_of, ready
from tests.contract.boto_client import bedrock_client
from tests.contract.conftest import Store
from tests.contract.logins import named
from tests.contract.raw_requests import Answer, send
from tests.doubles.providers import Provider

Json = dict[str, Any]


@pytest.fixture
def bedrock(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    with bedrock_here(monkeypatch, tmp_path) as provider:
        yield provider


REFUSED: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("another model", lambda c: c.converse(modelId="amazon.nova-pro-v1:0", messages=TURNS)),
    ("another profile", lambda c: c.converse(modelId=f"{MODEL}x", messages=TURNS)),
    ("a prompt", lambda c: c.converse(modelId="arn:aws:bedrock:x:1:prompt/p", messages=TURNS)),
    (
        "a guardrail",
        lambda c: c.apply_guardrail(
            guardrailIdentifier="g", guardrailVersion="1", source="INPUT", content=[]
        ),
    ),
    (
        "a job",
        lambda c: c.start_async_invoke(
            modelId=MODEL,
            modelInput={},
            outputDataConfig={"s3OutputDataConfig": {"s3Uri": "s3://bucket"}},
        ),
    ),
    ("a list of jobs", lambda c: c.list_async_invokes()),
    (
        "a guardrail of a chat",
        lambda c: c.converse(
            modelId=MODEL,
            messages=TURNS,
            guardrailConfig={"guardrailIdentifier": "g", "guardrailVersion": "1"},
        ),
    ),
    (
        "a guardrail of a model",
        lambda c: c.invoke_model(
            modelId=MODEL, body=b"{}", guardrailIdentifier="g", guardrailVersion="1"
        ),
    ),
    (
        "a dearer tier",
        lambda c: c.converse(modelId=MODEL, messages=TURNS, serviceTier={"type": "priority"}),
    ),
    (
        "a dearer tier of a model",
        lambda c: c.invoke_model(modelId=MODEL, body=b"{}", serviceTier="priority"),
    ),
    (
        "a dearer latency",
        lambda c: c.converse(
            modelId=MODEL, messages=TURNS, performanceConfig={"latency": "optimized"}
        ),
    ),
    (
        "an object in S3",
        lambda c: c.converse(
            modelId=MODEL,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {
                            "document": {
                                "format": "txt",
                                "name": "d",
                                "source": {"s3Location": {"uri": "s3://bucket/of/the/owner"}},
                            }
                        }
                    ],
                }
            ],
        ),
    ),
    (
        "an object in S3 for a model",
        lambda c: c.invoke_model(
            modelId=MODEL, body=json.dumps({"a": [{"S3_location": {"URI": " S3://bucket/x"}}]})
        ),
    ),
    (
        "an object in S3 to count",
        lambda c: c.count_tokens(
            modelId=MODEL,
            input={"invokeModel": {"body": json.dumps({"s3Uri": "s3://bucket/x"})}},
        ),
    ),
)


@pytest.mark.parametrize(("what", "call"), REFUSED, ids=[what for what, _ in REFUSED])
def test_nothing_beyond_the_endpoint(
    bedrock: Provider, what: str, call: Callable[[Any], Any]
) -> None:
    """boto3 raises what it raises if a role may not do it, and nothing is sent."""
    ready("chat")
    with pytest.raises(ClientError) as failed:
        call(bedrock_client("chat"))
    error = failed.value.response
    assert error["Error"]["Code"] == "AccessDeniedException", what
    assert error["Error"]["Message"]
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert bedrock.asked == []


def converse_at(path: str, **more: Any) -> Answer:
    return send("POST", path, json.dumps({"messages": TURNS}).encode(), **more)


@pytest.mark.parametrize(
    "path",
    [
        "model/{}/../../guardrail/g/version/1/apply",
        "model/{}/../other/converse",
        "model/other/{}/converse",
        "model/{}/converse/../../../async-invoke",
        "model/{}/invoke-with-bidirectional-stream",
        "model/{}/converse/x",
        "model/{}/Converse",
        "model/{}/converse ",
        "model/{}/converse\n",
        "model/{}%2f..%2fother/converse",
        "model/{}%252Fconverse",
        "model/{}?x=/converse",
        "model/{}#/converse",
        "model//converse",
        "model/{} /converse",
        "model/{}\0/converse",
        "Model/{}/converse",
        "x/model/{}/converse",
        "models/{}/converse",
        "async-invoke",
        "guardrail-checks/invoke",
        "foundation-models",
        "v1/messages",
        "model/https://other.example/{}/converse",
        "model/eu.vendor.model-v1:0/converse",
        "model/arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.vendor.model-v1:0/converse",
    ],
)
def test_no_path_leads_elsewhere(bedrock: Provider, path: str) -> None:
    """API Gateway has decoded it once; nothing of it is sent on."""
    ready("chat")
    answer = converse_at(f"chat/{path.format(MODEL)}")
    assert answer.status in {400, 403}
    assert bedrock.asked == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_other_verbs(bedrock: Provider, method: str) -> None:
    ready("chat")
    for path in ("async-invoke", f"model/{MODEL}/converse", "v1/models", "foundation-models"):
        assert send(method, f"chat/{path}").status == 403
    assert bedrock.asked == []


def test_a_query_is_not_sent_on(bedrock: Provider) -> None:
    ready("chat")
    assert converse_at(f"chat//model/{MODEL}/converse", query="Action=x&beta=true").status == 200
    assert bedrock.asked[0].path == f"/model/{path_of(MODEL)}/converse"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"[]", {}),
        (b"text", {"content-type": "application/octet-stream"}),
        (b'{"input": {"invokeModel": {"body": "e30="}}}', {"content-type": "image/png"}),
    ],
)
def test_bodies_that_cannot_be_checked(bedrock: Provider, body: bytes, headers: Json) -> None:
    ready("chat")
    answer = send("POST", f"chat/model/{MODEL}/invoke", body, headers=headers)
    assert (answer.status, answer.json["__type"]) == (400, "ValidationException")
    assert bedrock.asked == []


def test_names_of_fields_in_other_spellings(bedrock: Provider) -> None:
    """A repeated name means the last one, as it is sent; others may be read alike by Bedrock."""
    ready("chat")
    for text in (
        '{"messages": [], "guardrailconfig": {"guardrailIdentifier": "g"}}',
        '{"messages": [], "GuardrailConfig": null}',
        '{"serviceTier": {"type": "default"}, "serviceTier": {"type": "priority"}}',
        '{"servicetier": "priority"}',
        '{"serviceTier": {"type": "priority"}, "servicetier": {"type": "default"}}',
        '{"serviceTier": {"Type": "priority"}}',
        '{"service_tier": "priority"}',
        '{"toolUse": {"toolUseId": "t", "source": {"s3Location": {"uri": "s3://b/x"}}}}',
        '{"toolResult": {"content": [{"document": {"source": {"s3Uri": "s3://b/x"}}}]}}',
        '{"a": {"type": "tool_use", "input": {"s3Uri": "s3://b/x"}}}',
        '{"performanceConfig": {"latency": "optimized"}, "PerformanceConfig": {}}',
        '{"a": {"s3Location": [{"uri": "s3://b/x"}]}}',
        '{"a": {"s3Location": {"x": {"uri": "s3://b/x"}}}}',
        '{"serviceTier": {"type": ["priority"]}}',
        '{"a": {"s3location": {"uri": "s3://b/x"}}}',
        '{"a": {"s3Location": "s3://b/x"}}',
    ):
        answer = send("POST", f"chat/model/{MODEL}/converse", text.encode())
        assert answer.status == 403, text
    deep = b'{"a":' * 300 + b"{}" + b"}" * 300
    assert send("POST", f"chat/model/{MODEL}/invoke", deep).status == 400
    bad = b'{"input": {"invokeModel": {"body": "***"}}}'
    assert send("POST", f"chat/model/{MODEL}/count-tokens", bad).status == 400
    assert bedrock.asked == []
    schema = {"s3Location": {"type": "object", "properties": {"uri": {"type": "string"}}}}
    tool = {"toolSpec": {"name": "t", "inputSchema": {"json": {"properties": schema}}}}
    text = json.dumps({"messages": TURNS, "toolConfig": {"tools": [tool]}})
    assert send("POST", f"chat/model/{MODEL}/converse", text.encode()).status == 200


def test_tools_may_be_about_s3(bedrock: Provider) -> None:
    """What a tool is called with, and what it has answered, is no file that Bedrock reads."""
    ready("chat")
    place = {"s3_uri": "s3://bucket/key", "s3Location": {"uri": "s3://bucket/key"}}
    used = {"toolUseId": "t", "name": "read", "input": place}
    result = {"toolUseId": "t", "content": [{"json": place}]}
    turns = [
        *TURNS,
        {"role": "assistant", "content": [{"toolUse": used}]},
        {"role": "user", "content": [{"toolResult": result}, *TURNS[0]["content"]]},
    ]
    client = bedrock_client("chat")
    assert client.converse(modelId="chat", messages=turns)["stopReason"] == "end_turn"


def test_who_may_use_it(bedrock: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)
    ready("chat")
    for permission, status in (("READ", 403), ("USE", 200)):
        monkeypatch.setenv("DEFAULT_PERMISSION", permission)
        for path in (f"chat/model/{MODEL}/converse", f"chat/model/{MODEL}/converse-stream"):
            answer = converse_at(path, handler=handler, caller=named("ann"))
            assert answer.status == status
        assert (
            converse_at("none/model/x/converse", handler=handler, caller=named("ann")).status == 403
        )
    assert len(bedrock.asked) == 2
    client = bedrock_client("chat", handler, named("ann"))
    assert client.converse(modelId="chat", messages=TURNS)["stopReason"] == "end_turn"
