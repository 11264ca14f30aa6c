"""One browser page that remembers everything that went wrong on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error

from tests.engines import ROOT

SCREENSHOTS = ROOT / ".cache/screenshots"
"""One picture for each page looked at, of the last run."""
STILL_SECONDS = 0.4
PATIENCE_SECONDS = 100

IDLE = "() => new Promise((done) => requestIdleCallback(() => done(), {timeout: 5000}))"
"""Of JavaScript: ends when the page has worked off what was answered, which takes a busy machine
longer than it asks for nothing."""

EXPECTED = {
    # As MLflow's server does where nobody logs in; the UI takes it for that.
    ("GET", "/ajax-api/2.0/mlflow/users/current", 404),
}
VIDEO = "https://mlflow.org/docs/**/*.mp4"
"""The page of traces shows it where there are none; the tests ask nothing of other machines."""
HARMLESS = (
    # The spans of a trace are laid out over several frames; browsers count that as an error.
    "ResizeObserver loop completed with undelivered notifications",
)


class Visitor:
    """Opens pages of the UI, waits until they are still, and tells what went wrong meanwhile."""

    def __init__(self, page: Any, url: str, patience: float = PATIENCE_SECONDS) -> None:
        self.page = page
        self.problems: list[str] = []
        self.expected = set(EXPECTED)
        self._url = url
        self._patience = patience
        self._asked: dict[int, str] = {}
        self._changed = time.monotonic()
        page.route(VIDEO, lambda route: route.fulfill(status=204))
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("request", self._begun)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _said(self, message: Any) -> None:
        # The browser repeats here what it says of responses, with the address in the location.
        ignored = ("Failed to load resource", *HARMLESS)
        if message.type == "error" and not any(text in message.text for text in ignored):
            self.problems.append(f"console: {message.text[:500]}")

    def _begun(self, request: Any) -> None:
        self._changed = time.monotonic()
        # The start of a worker is announced, its end is not.
        if not request.url.endswith(".worker.js"):
            self._asked[id(request)] = request.url

    def _ended(self, request: Any) -> None:
        self._changed = time.monotonic()
        self._asked.pop(id(request), None)

    def _failed(self, request: Any) -> None:
        self._ended(request)
        # A page that is left gives up what it still waits for.
        if request.failure != "net::ERR_ABORTED":
            self.problems.append(f"failed: {request.method} {request.url} {request.failure}")

    def _answered(self, response: Any) -> None:
        call = (response.request.method, urlsplit(response.url).path, response.status)
        if response.status >= 400 and call not in self.expected:
            self.problems.append(f"{response.status}: {call[0]} {response.url[:300]}")

    def open(self, path: str) -> None:
        """Loads the page anew at a place of the UI, such as ``/experiments``."""
        self.page.goto("about:blank")
        self.page.goto(f"{self._url}/#{path}")
        self.settle()

    def settle(self) -> None:
        """Waits until nothing is asked for any more."""
        deadline = time.monotonic() + self._patience
        while not self._is_still():
            self.page.wait_for_timeout(50)
            if time.monotonic() > deadline:
                self.problems.append(f"never answered: {sorted(self._asked.values())}")
                self._asked.clear()
                return

    def _is_still(self) -> bool:
        changed = self._changed
        if self._asked or time.monotonic() - changed < STILL_SECONDS:
            return False
        try:
            self.page.evaluate(IDLE)
        except Error:  # the page is just being left
            return False
        return self._changed == changed

    def looks(self, name: str, *texts: str) -> None:
        """The texts are to be seen and nothing has gone wrong; keeps a screenshot."""
        path: Path = SCREENSHOTS / f"{name}.png"
        try:
            for text in texts:
                self.page.get_by_text(text).locator("visible=true").first.wait_for(
                    timeout=1000 * self._patience
                )
            self.settle()
        finally:
            self.page.screenshot(path=path)
        assert not self.problems, "\n".join([name, *self.problems])
