"""One browser page that remembers everything that went wrong on it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error

from tests.engines import ROOT

SCREENSHOTS = ROOT / ".cache/screenshots"
"""Pictures of pages that are not as they should be, of the last run."""
OF_ALL = os.environ.get("SCREENSHOTS") == "all"
"""Whether there is a picture of each page that is looked at."""
STILL_SECONDS = 0.4
PATIENCE_SECONDS = 100

IDLE = "() => new Promise((done) => requestIdleCallback(() => done(), {timeout: 5000}))"
"""Of JavaScript: ends when the page has worked off what was answered, which takes a busy machine
longer than it asks for nothing."""

EXPECTED = {
    # As MLflow's server does where nobody logs in; the UI takes it for that.
    ("GET", "/ajax-api/2.0/mlflow/users/current", 404),
}
VIDEOS = "https://mlflow.org/docs/"
"""The page of traces shows one where there are none; the browser finds no other machine."""
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
        # A route would turn the browser's cache off, which saves a third of the time of a page.
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
        if request.failure != "net::ERR_ABORTED" and not request.url.startswith(VIDEOS):
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

    def go(self, path: str) -> None:
        """Goes on to a place of the UI as a link there does: the page stays loaded, which takes a
        third of the processor time. It may show again what it has asked for before."""
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
        """The texts are to be seen and nothing has gone wrong; else there is a screenshot."""
        path: Path = SCREENSHOTS / f"{name}.png"
        is_right = False
        try:
            for text in texts:
                self.page.get_by_text(text).locator("visible=true").first.wait_for(
                    timeout=1000 * self._patience
                )
            self.settle()
            is_right = not self.problems
        finally:
            if OF_ALL or not is_right:
                self.page.screenshot(path=path)
        assert not self.problems, "\n".join([name, *self.problems])
