"""Converts events of API Gateway's REST APIs, which can stream, to those of its HTTP APIs, which
all functions and the authorizer read.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
describes both formats (1.0 and 2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlencode

from mlcore.http.raw_request import Event

_OF_API_GATEWAY: Final = ("principalId", "integrationLatency")
"""What API Gateway adds to the context that an authorizer returned."""


def is_rest_event(event: Event) -> bool:
    """Whether a Lambda event (for a function or an authorizer) comes from a REST API."""
    return "httpMethod" in event


def as_http_event(event: Event) -> dict[str, Any]:
    """Returns a REST API's event in format 2.0.

    Headers that differ only in the case of their names are joined, so that authorizer and function
    read the same value. ``requestContext.authorizer`` has the authorizer's context as ``lambda``,
    or the identity that signed the request as ``iam``; it is empty if the API asks for neither.
    """
    about = event["requestContext"]
    identity = about.get("identity") or {}
    headers = _headers(event)
    cookies = headers.pop("cookie", "")
    parameters: Mapping[str, list[str]] = event.get("multiValueQueryStringParameters") or {}
    return {
        "version": "2.0",
        "rawPath": unquote(event["path"]),
        "rawQueryString": urlencode(parameters, doseq=True),
        "headers": headers,
        "cookies": [cookie.strip() for cookie in cookies.split(";") if cookie.strip()],
        "body": event.get("body") or "",
        "isBase64Encoded": bool(event.get("isBase64Encoded")),
        "requestContext": {
            "http": {
                "method": event["httpMethod"],
                "path": unquote(event["path"]),
                "sourceIp": identity.get("sourceIp") or "",
                "userAgent": identity.get("userAgent") or "",
            },
            "requestId": about.get("requestId", ""),
            "apiId": about.get("apiId"),
            "domainName": about.get("domainName"),
            "domainPrefix": about.get("domainPrefix"),
            "timeEpoch": about.get("requestTimeEpoch"),
            "authorizer": _authorization(about.get("authorizer") or {}, identity),
        },
    }


def _headers(event: Event) -> dict[str, str]:
    joined: dict[str, list[str]] = {}
    for name, values in (event.get("multiValueHeaders") or {}).items():
        joined.setdefault(name.lower(), []).extend(values)
    return {name: ",".join(values) for name, values in joined.items()}


def _authorization(context: Mapping[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in context.items() if name not in _OF_API_GATEWAY}
    if own:
        return {"lambda": own}
    if identity.get("userArn"):
        return {"iam": {"userArn": identity["userArn"]}}
    return {}
