"""The answer to a request; knows neither MLflow nor Lambda."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Response(NamedTuple):
    status: int
    body: str | bytes | Iterator[bytes]
    """Bytes are sent as they are; Lambda passes them on as Base64. Parts of a text are sent as they
    come where the runtime can, else together."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    """Further headers, names in lower case."""
