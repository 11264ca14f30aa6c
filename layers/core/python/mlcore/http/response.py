"""The answer to a request; knows neither MLflow nor Lambda."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Response(NamedTuple):
    status: int
    body: str
    content_type: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    """Further headers, names in lower case."""
