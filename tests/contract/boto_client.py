"""A client of boto3 whose requests are answered by the function, without a network."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from urllib3 import HTTPResponse

import gateway_calls.app
from mlcore.http.handler import Handler


def bedrock_client(
    endpoint: str, handler: Handler = gateway_calls.app.handler, caller: Any = None
) -> Any:
    """A client ``bedrock-runtime`` at the proxy of an endpoint."""
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=f"https://mlflow.example/gateway/proxy/{endpoint}",
        region_name="eu-west-3",
        aws_access_key_id="AKIDOFNOBODY",
        aws_secret_access_key="nothing",
        config=Config(retries={"total_max_attempts": 1}),
    )

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        parts = urlsplit(request.url)
        body: Any = request.body or b""
        content = body.encode() if isinstance(body, str) else bytes(body)
        event = {
            "version": "2.0",
            "rawPath": unquote(parts.path),
            "rawQueryString": parts.query,
            "headers": {name.lower(): _text(value) for name, value in request.headers.items()},
            "requestContext": {
                "http": {"method": request.method},
                "requestId": "test",
                **({} if caller is None else {"authorizer": caller}),
            },
            "isBase64Encoded": True,
            **({"body": base64.b64encode(content).decode()} if content else {}),
        }
        told = handler(event, None)
        text = told["body"]
        sent = base64.b64decode(text) if told["isBase64Encoded"] else text.encode()
        raw = HTTPResponse(BytesIO(sent), preload_content=False)
        return AWSResponse(request.url, told["statusCode"], told["headers"], raw)

    client.meta.events.register_first("before-send", answer)
    return client


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
