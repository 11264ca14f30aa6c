"""Dispatches events of an API Gateway HTTP API (v2) to service functions and makes the
responses."""

from mlcore.http.handler import lambda_handler
from mlcore.http.message_parsing import decoded, of_query
from mlcore.http.raw_request import Parse, Sent, SentMessage, nothing
from mlcore.http.request import Request
from mlcore.http.response import Response, failure
from mlcore.http.routes import PlainRoute, Rpc, delete, get, patch, post, preview, put

__all__ = [
    "Parse",
    "PlainRoute",
    "Request",
    "Response",
    "Rpc",
    "Sent",
    "SentMessage",
    "decoded",
    "delete",
    "failure",
    "get",
    "lambda_handler",
    "nothing",
    "of_query",
    "patch",
    "post",
    "preview",
    "put",
]
