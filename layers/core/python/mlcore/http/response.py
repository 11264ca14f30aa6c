"""The HTTP response to a request, and how an error becomes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from mlcore.errors import CallerLimitReached, MlflowError, RequestLimitExceeded
from mlcore.wire import encode


class Response(NamedTuple):
    status: int
    body: str | bytes | Iterator[bytes]
    """Bytes are returned to Lambda as Base64. An iterator is streamed if the runtime supports it,
    else joined."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    """Further headers, names in lower case."""
    cookies: tuple[str, ...] = ()
    """Values of Set-Cookie headers, where one answer has several."""
    actor: str = ""
    """The user who signs in or out, for the audit; not part of the answer."""
    created: Mapping[str, str] = MappingProxyType({})
    """Ids of what the request created, by the names of their fields, where the body is not JSON of
    the product's own; for the audit, no part of the answer."""


def failure(error: MlflowError) -> Response:
    """Returns the response for an error, with the headers of :func:`retry_headers`. MLflow's
    clients repeat every request that is answered 429, but since 3.18 not every one that is answered
    503."""
    return Response(error.status, encode(error.body()), headers=retry_headers(error))


def retry_headers(error: MlflowError) -> dict[str, str]:
    """Returns the Retry-After header of a RequestLimitExceeded or CallerLimitReached; empty for
    other errors."""
    if isinstance(error, RequestLimitExceeded | CallerLimitReached):
        return {"retry-after": str(error.retry_seconds)}
    return {}
