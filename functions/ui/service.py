"""Answers for parts of the UI that have nothing behind them here: no gateway, no telemetry."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from ui import messages as m


def proxy_to_gateway(message: m.GatewayProxy, request: Request) -> dict[str, Any]:
    """What MLflow's server says when no gateway is set up."""
    return {"endpoints": []}


def get_telemetry_settings(message: m.UiTelemetry, request: Request) -> dict[str, Any]:
    """Nothing is to be reported to anybody."""
    return {"disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0}


def report_telemetry(message: m.UiTelemetry, request: Request) -> dict[str, Any]:
    """Tells a page that was loaded from another server to stop."""
    return {"status": "disabled"}
