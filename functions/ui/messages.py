"""Requests that only the web UI sends."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message


class GraphQlRequest(Message):
    query: str
    variables: Any
    operation_name: str


class Nothing(Message):
    """A request whose arguments are ignored."""
