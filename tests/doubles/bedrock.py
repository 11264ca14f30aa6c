"""Amazon Bedrock's Converse and ConverseStream, as the service's public description has them, and
its check of signatures."""

from __future__ import annotations

import datetime
import json
import re
from binascii import crc32
from struct import pack
from typing import Any
from unittest.mock import patch

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.doubles.providers import Asked, Told

_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/bedrock/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}"
)


def converse(request: Asked) -> Told:
    """A model that repeats what it is told, and uses the tools that it is given."""
    body = request.body
    blocks = [part for part in body["messages"][-1]["content"] if "cachePoint" not in part]
    block = blocks[-1]
    text = block["text"] if "text" in block else block["toolResult"]["content"][0]["text"]
    used = {
        "inputTokens": 10,
        "outputTokens": 6,
        "totalTokens": 20,
        "cacheReadInputTokens": 4,
        "cacheWriteInputTokens": 0,
    }
    tools = (body.get("toolConfig") or {}).get("tools")
    stop = "tool_use" if tools else "end_turn"
    if request.path.endswith("/converse-stream"):
        return _streamed(text, tools, stop, used)
    content: list[Any] = [{"text": f"echo: {text}"}]
    if tools:
        name = tools[0]["toolSpec"]["name"]
        content = [{"toolUse": {"toolUseId": "tooluse_1", "name": name, "input": {"city": text}}}]
    message = {"role": "assistant", "content": content}
    metrics = {"latencyMs": 3}
    return Told(
        body={"output": {"message": message}, "stopReason": stop, "usage": used, "metrics": metrics}
    )


def _streamed(text: str, tools: Any, stop: str, used: Any) -> Told:
    events: list[tuple[str, Any]] = [("messageStart", {"role": "assistant"})]
    if tools:
        begun = {"toolUseId": "tooluse_1", "name": tools[0]["toolSpec"]["name"]}
        events.append(("contentBlockStart", {"start": {"toolUse": begun}, "contentBlockIndex": 1}))
        deltas: list[Any] = [{"toolUse": {"input": part}} for part in ('{"city": ', f'"{text}"}}')]
    else:
        deltas = [{"text": part} for part in ("echo: ", *text.split(" "))]
    events += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": 1}) for delta in deltas]
    events.append(("contentBlockStop", {"contentBlockIndex": 1}))
    events.append(("messageStop", {"stopReason": stop}))
    events.append(("metadata", {"usage": used, "metrics": {"latencyMs": 3}}))
    whole = b"".join(frame(kind, event) for kind, event in events)
    cut = len(whole) // 3  # which is within an event
    return stream(whole[:cut], whole[cut:])


def stream(*parts: bytes) -> Told:
    return Told(parts=parts, content_type="application/vnd.amazon.eventstream")


def frame(kind: str, event: Any, message_type: str = "event") -> bytes:
    """One message of the binary form: lengths, headers, payload, and sums of both."""
    named = {f":{message_type}-type": kind, ":message-type": message_type}
    headers = b"".join(
        pack("!B", len(name)) + name.encode() + pack("!BH", 7, len(value)) + value.encode()
        for name, value in named.items()
    )
    payload = json.dumps(event).encode()
    prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + pack("!I", crc32(prelude)) + headers + payload
    return head + pack("!I", crc32(head))


def signer_of(request: Asked, secret_key: str, token: str | None = None) -> tuple[str, str]:
    """The access key and the region that a request was signed with, once botocore signs it the same
    way."""
    signed = _SIGNED.fullmatch(request.headers["authorization"])
    assert signed is not None, "the header has another form"
    access_key, region, names = signed.groups()
    assert {"host", "x-amz-date"} <= set(names.split(";"))
    moment = datetime.datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    again = AWSRequest(
        "POST",
        f"http://{request.headers['host']}{request.path}",
        headers={
            name: request.headers[name]
            for name in names.split(";")
            if name not in ("x-amz-date", "x-amz-security-token")
        },
        data=request.raw,
    )
    with patch("botocore.auth.get_current_datetime", return_value=moment):
        botocore.auth.SigV4Auth(
            Credentials(access_key, secret_key, token), "bedrock", region
        ).add_auth(again)
    assert again.headers["Authorization"] == request.headers["authorization"]
    assert request.headers.get("x-amz-security-token") == token
    return access_key, region
