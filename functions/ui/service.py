"""Answers for parts of the UI that have nothing behind them here: no gateway, no telemetry, no
assistant, and lists of things that nobody can create."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from ui import messages as m


def proxy_to_gateway(message: m.Nothing, request: Request) -> dict[str, Any]:
    """What MLflow's server says when no gateway is set up."""
    return {"endpoints": []}


def get_telemetry_settings(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Nothing is to be reported to anybody."""
    return {"disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0}


def report_telemetry(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Tells a page that was loaded from another server to stop."""
    return {"status": "disabled"}


def get_assistant_config(message: m.Nothing, request: Request) -> dict[str, Any]:
    """No assistant is set up, nor may one be used from afar."""
    return {"providers": {}, "projects": {}, "remote_access_allowed": False}


def list_assistant_providers(message: m.Nothing, request: Request) -> dict[str, Any]:
    return {"providers": [], "resolved": None, "gateway_vendor_options": {}}
