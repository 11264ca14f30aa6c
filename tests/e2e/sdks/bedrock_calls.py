"""boto3 and Anthropic's client of Bedrock: chats, messages, streams, tools, embeddings, errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import anthropic
import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from tests.e2e.sdks.observing import CITY, FAILURES, Call, Target, failures, main

MODEL, TOKEN = sys.argv[2:]
"""The endpoint's model, and an API key of the server."""
TURN = {"role": "user", "content": [{"text": "Grüezi"}]}
TOOL = {"toolSpec": {"name": "lookup", "inputSchema": {"json": CITY}}}


class Refused(Exception):
    """What boto3 raises, with its status."""

    def __init__(self, error: ClientError) -> None:
        self.status_code = error.response["ResponseMetadata"].get("HTTPStatusCode")
        super().__init__(f"{type(error).__name__}: {error}")


def shown(call: Call) -> Any:
    """An answer without what a connection adds, and with all of its bodies and events."""
    try:
        answer = call()
        return {name: _value(answer[name]) for name in answer if name != "ResponseMetadata"}
    except EventStreamError:
        raise
    except ClientError as error:
        raise Refused(error) from None


def _value(value: Any) -> Any:
    if hasattr(value, "read"):
        return json.loads(value.read())
    return value if _is_plain(value) else list(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | Mapping | list)


def said(content: Any) -> dict[str, Any]:
    return {"max_tokens": 1024, "messages": [{"role": "user", "content": content}]}


def invoked(content: Any, **more: Any) -> dict[str, Any]:
    body = {"anthropic_version": "bedrock-2023-05-31", **said(content), **more}
    return {"modelId": MODEL, "body": json.dumps(body)}


def calls_at(target: Target) -> dict[str, Call]:
    client: Any = boto3.client(
        "bedrock-runtime",
        endpoint_url=target.anthropic,
        region_name="eu-west-1",
        aws_access_key_id="AKIDOFNOBODY",
        aws_secret_access_key="nothing",
        config=Config(retries={"total_max_attempts": 1}),
    )

    def log_in(request: Any, **_: Any) -> None:
        # boto3 sends bearer tokens to addresses with https only.
        request.headers["X-MLflow-Authorization"] = f"Bearer {TOKEN}"

    client.meta.events.register("before-sign.bedrock-runtime", log_in)
    claude: Any = anthropic.AnthropicBedrock(
        base_url=target.anthropic, api_key=TOKEN, aws_region="eu-west-1", max_retries=0
    )
    chat = {"modelId": MODEL, "messages": [TURN], "system": [{"text": "Be brief."}]}
    tools = {"toolConfig": {"tools": [TOOL]}}
    used = {"tools": [{"name": "lookup", "input_schema": CITY}]}
    stream = client.invoke_model_with_response_stream

    def failing(text: str) -> Any:
        return shown(partial(client.invoke_model, **invoked(text)))

    def failing_stream(text: str) -> Any:
        return shown(partial(stream, **invoked(text)))

    boto_calls = {
        "chat": partial(client.converse, **chat, inferenceConfig={"maxTokens": 9}),
        "chat with a tool": partial(client.converse, **chat, **tools),
        "streamed chat": partial(client.converse_stream, **chat),
        "streamed tool": partial(client.converse_stream, **chat, **tools),
        "message": partial(client.invoke_model, **invoked("Grüezi")),
        "message with a type": partial(
            client.invoke_model,
            **invoked("hi", anthropic_beta=["context-1m-2025-08-07"]),
            contentType="application/json",
            accept="application/json",
        ),
        "streamed message": partial(stream, **invoked("Grüezi", **used)),
        "count of tokens": partial(
            client.count_tokens, modelId=MODEL, input={"converse": {"messages": [TURN]}}
        ),
    }
    return {
        **{name: partial(shown, call) for name, call in boto_calls.items()},
        **failures("message", failing, FAILURES),
        **failures("stream", failing_stream, FAILURES),
        "claude": lambda: claude.messages.create(model=MODEL, **said("hi"), **used),
        "streamed claude": lambda: list(
            claude.messages.create(model=MODEL, **said("hi"), stream=True)
        ),
        "claude of a beta": lambda: claude.beta.messages.create(
            model=MODEL, **said("hi"), betas=["context-1m-2025-08-07"]
        ),
        **failures(
            "claude", lambda text: claude.messages.create(model=MODEL, **said(text)), FAILURES
        ),
    }


main(calls_at)
