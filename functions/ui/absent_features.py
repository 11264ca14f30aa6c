"""Fixed answers for features of the UI that this server lacks: the old gateway, telemetry and the
assistant."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from ui import messages as m


def proxy_to_gateway(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Returns no endpoints, like an MLflow server that has no separate (old) gateway server."""
    return {"endpoints": []}


def get_telemetry_settings(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Returns settings with which the UI reports no telemetry."""
    return {"disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0}


def report_telemetry(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Returns the response that makes the UI stop reporting telemetry. A page that was loaded from
    another server may still report it."""
    return {"status": "disabled"}


def get_assistant_config(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Returns that no assistant is set up, and that remote use is not allowed."""
    return {"providers": {}, "projects": {}, "remote_access_allowed": False}


def list_assistant_providers(message: m.Nothing, request: Request) -> dict[str, Any]:
    return {"providers": [], "resolved": None, "gateway_vendor_options": {}}
