"""Requests that only the web UI sends."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message


class GraphQlRequest(Message):
    query: str
    variables: Any
    operation_name: str


class GatewayProxy(Message):
    """What the gateway would be asked does not matter: there is none."""


class UiTelemetry(Message):
    """What the UI reports is not read."""
