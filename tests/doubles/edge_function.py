"""CloudFront's runtime for the functions of a distribution: JavaScript, event in, event out."""

from __future__ import annotations

import json
import subprocess
import threading
import weakref
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from playwright._impl._driver import compute_driver_executable

_CALLS = """
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  process.stdout.write(JSON.stringify(handler(JSON.parse(line))) + '\\n');
});
"""
LARGEST_BYTES = 10_240
"""CloudFront takes no larger function."""


class EdgeFunction:
    """One function of viewer requests, in a process that ends with the object."""

    def __init__(self, code: str) -> None:
        assert len(code.encode()) <= LARGEST_BYTES
        self._code = code
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], query: str = ""
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Status, headers and body of its own answer; None: the request goes on."""
        lower = {name.lower(): value for name, value in headers.items()}
        cookies = SimpleCookie(lower.pop("cookie", ""))
        request = {
            "method": method,
            "uri": path,
            "querystring": _parameters(query),
            "headers": {name: {"value": value} for name, value in lower.items()},
            "cookies": {name: {"value": cookie.value} for name, cookie in cookies.items()},
        }
        event = {"version": "1.0", "context": {"eventType": "viewer-request"}, "request": request}
        run = self._run(event)
        if "statusCode" not in run:
            assert run == request
            return None
        answered = {name: header["value"] for name, header in run.get("headers", {}).items()}
        for name, cookie in run.get("cookies", {}).items():
            answered["set-cookie"] = f"{name}={cookie['value']}; {cookie['attributes']}"
        return run["statusCode"], answered, run.get("body", "").encode()

    def _run(self, event: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{json.dumps(event)}\n")
            process.stdin.flush()
            response: dict[str, Any] = json.loads(process.stdout.readline())
        return response

    def _start(self) -> subprocess.Popen[str]:
        node, _ = compute_driver_executable()
        process = subprocess.Popen(
            [node, "-e", self._code + _CALLS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        weakref.finalize(self, _end, process)
        return process


def _parameters(query: str) -> dict[str, Any]:
    """The parameters as they came, percent-encoded; one that occurs several times has all its
    values."""
    values: dict[str, list[dict[str, str]]] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        values.setdefault(name, []).append({"value": value})
    return {
        name: {**entries[0], **({"multiValue": entries} if len(entries) > 1 else {})}
        for name, entries in values.items()
    }


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
