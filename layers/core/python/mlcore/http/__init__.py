"""From an API Gateway HTTP API v2 event to a service function and back; knows no domain."""

from mlcore.http.handler import lambda_handler
from mlcore.http.request import Request, decode_request
from mlcore.http.response import Response
from mlcore.http.routes import PlainRoute, Rpc, delete, get, patch, post, preview, put

__all__ = [
    "PlainRoute",
    "Request",
    "Response",
    "Rpc",
    "decode_request",
    "delete",
    "get",
    "lambda_handler",
    "patch",
    "post",
    "preview",
    "put",
]
