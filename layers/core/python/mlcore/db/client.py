"""The one botocore client of the process; nothing else creates one.

A client costs 15 to 50 ms and several MB, so every caller shares it. Its parser is replaced for
successful answers: DynamoDB's JSON is already what callers want, and botocore's walk over the
response shape would be the largest part of a page's cost. Only bytes stay Base64 text
(:func:`mlcore.db.attributes.bytes_of`).
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any

import botocore.session
from botocore.config import Config

CONNECT_TIMEOUT_SECONDS = 1
READ_TIMEOUT_SECONDS = 4
ATTEMPTS = 3
"""3 attempts of at most 5 s with short back-off stay under the 29 s of an API function."""

POOL_CONNECTIONS = 32

USER_AGENT = "mlflow-serverless"
"""Given, because botocore would compose its own anew for each request."""

_OPERATIONS = (
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "TransactWriteItems",
    "UpdateItem",
)


@functools.cache
def client() -> Any:
    """The shared DynamoDB client. Region, endpoint and credentials come from the environment, as
    botocore reads them."""
    made = botocore.session.get_session().create_client(
        "dynamodb",
        config=Config(
            parameter_validation=False,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=POOL_CONNECTIONS,
            tcp_keepalive=True,
            user_agent=USER_AGENT,
        ),
    )
    for operation in _OPERATIONS:
        made.meta.events.register(f"before-parse.dynamodb.{operation}", _take_json_as_it_is)
    return made


def _take_json_as_it_is(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    if response_dict["status_code"] < 300:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


if "AWS_LAMBDA_RUNTIME_API" in os.environ:
    # 60 ms that belong to the start of the function, where Lambda gives it a whole processor, and
    # not to its first request.
    client()
