"""Checks that the API refuses reads and writes by web pages of other origins."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup_state import Checkup, expect

_STRANGER: Final = "https://stranger.example"
_PATH: Final = "/api/2.0/mlflow/experiments/search"


def refuse(checkup: Checkup) -> str:
    """A step of ``doctor``: checks that the server's answers have the headers that protect
    browsers, and that it refuses a request from a page of another origin. Returns the result as a
    text. Raises Wrong if one is not so."""
    api = checkup.api
    plain = api.call("POST", _PATH, {"max_results": 1})
    sniffing = plain.headers.get("x-content-type-options")
    expect(sniffing == "nosniff", f"x-content-type-options is {sniffing}")
    expect("x-frame-options" in plain.headers, "there is no x-frame-options")
    foreign = {"Origin": _STRANGER, "Sec-Fetch-Site": "cross-site"}
    answer = api.call("POST", _PATH, {"max_results": 1}, headers=foreign)
    allowed = answer.headers.get("access-control-allow-origin")
    expect(answer.status == 403, f"a write from a page of {_STRANGER}: {answer.status}")
    expect(allowed is None, f"access-control-allow-origin: {allowed}")
    asks = {**foreign, "Access-Control-Request-Method": "POST"}
    preflight = api.call("OPTIONS", _PATH, headers=asks)
    allowed = preflight.headers.get("access-control-allow-origin")
    expect(allowed is None, f"a preflight from {_STRANGER} is allowed: {allowed}")
    return "a page of another origin is refused, and the headers are there"
