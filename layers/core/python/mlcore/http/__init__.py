"""From an API Gateway HTTP API v2 event to a service function and back; knows no domain."""

from mlcore.http.handler import lambda_handler
from mlcore.http.parsing import decoded, of_query
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.routes import PlainRoute, Rpc, delete, get, patch, post, preview, put
from mlcore.http.sent import Parse, Sent, nothing

__all__ = [
    "Parse",
    "PlainRoute",
    "Request",
    "Response",
    "Rpc",
    "Sent",
    "decoded",
    "delete",
    "get",
    "lambda_handler",
    "nothing",
    "of_query",
    "patch",
    "post",
    "preview",
    "put",
]
