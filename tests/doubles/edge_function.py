"""CloudFront's runtime for the functions of a distribution: JavaScript, event in, event out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from playwright._impl._driver import compute_driver_executable

_CALL = """
const found = handler(JSON.parse(require('fs').readFileSync(0)));
process.stdout.write(JSON.stringify(found));
"""
LARGEST_BYTES = 10_240
"""CloudFront takes no larger function."""


class EdgeFunction:
    """One function of viewer requests."""

    def __init__(self, code: str) -> None:
        assert len(code.encode()) <= LARGEST_BYTES
        self._code = code

    def answer(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Status, headers and body of its own answer; None: the request goes on."""
        lower = {name.lower(): value for name, value in headers.items()}
        cookies = SimpleCookie(lower.pop("cookie", ""))
        request = {
            "method": method,
            "uri": path,
            "querystring": {},
            "headers": {name: {"value": value} for name, value in lower.items()},
            "cookies": {name: {"value": one.value} for name, one in cookies.items()},
        }
        event = {"version": "1.0", "context": {"eventType": "viewer-request"}, "request": request}
        found = self._run(event)
        if "statusCode" not in found:
            assert found == request
            return None
        answered = {name: one["value"] for name, one in found.get("headers", {}).items()}
        for name, one in found.get("cookies", {}).items():
            answered["set-cookie"] = f"{name}={one['value']}; {one['attributes']}"
        return found["statusCode"], answered, found.get("body", "").encode()

    def _run(self, event: dict[str, Any]) -> dict[str, Any]:
        node, _ = compute_driver_executable()
        done = subprocess.run(
            [node, "-e", self._code + _CALL],
            input=json.dumps(event),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found
