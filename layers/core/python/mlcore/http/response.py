"""The answer to a request; knows neither MLflow nor Lambda."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Response(NamedTuple):
    status: int
    body: str | bytes
    """Bytes are sent as they are; Lambda passes them on as Base64."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    """Further headers, names in lower case."""
