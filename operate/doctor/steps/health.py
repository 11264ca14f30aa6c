"""Checks that the server answers ``GET /health``."""

from __future__ import annotations

from operate.doctor.api import Login
from operate.doctor.checkup_state import Checkup, expect


def reach(checkup: Checkup) -> str:
    """Checks that ``GET /health`` succeeds without a login. Returns the result as a text; raises
    Wrong."""
    health = checkup.api.call("GET", "/health", login=Login())
    expect(
        (health.status, health.text) == (200, "OK"),
        f"GET /health: {health.status} {health.text[:80]!r}, not 200 'OK'",
    )
    return "GET /health answers OK"
