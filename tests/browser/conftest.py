"""One browser, one runner with the example's data, for all tests of the UI."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import sync_playwright

from tests.browser import chromium, traced
from tests.browser.visitor import SCREENSHOTS, Visitor
from tests.differential.rest import Call, Side, get, post
from tests.e2e import warm_clients
from tests.engines import ROOT
from tests.servers import environment, start_product, stopped

STORED = "cookies,local_storage,indexeddb,cache_storage,service_workers,file_systems"
"""What a page keeps in a browser, as the protocol of its developer tools names it."""


class Data(NamedTuple):
    """A running product that the example has trained on."""

    url: str
    api: Side
    experiment: str
    runs: list[dict[str, Any]]

    def ask(self, call: Call) -> Any:
        reply = self.api.send(call)
        assert reply.status == 200, reply
        return reply.body


class Traces(NamedTuple):
    """What the agent left behind; the trace of each question, and of the one that failed."""

    experiment: str
    made: list[str]
    failed: str


@pytest.fixture(scope="package")
def chromium_of_playwright() -> Iterator[Any]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="package")
def browser(chromium_of_playwright: Any) -> Iterator[Any]:
    started = chromium_of_playwright.launch(**_program())
    try:
        yield started
    finally:
        started.close()


def _program() -> dict[str, Any]:
    program = chromium.executable()
    return {
        "executable_path": str(program),
        "args": chromium.ARGUMENTS,
        "env": chromium.environment(program),
    }


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("ui")
    # Models may be servers of this machine.
    started = start_product(
        folder,
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http,https",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with stopped(started) as server:
        _train(server.url, folder)
        api = Side(server.url)
        named = api.send(get("experiments/get-by-name", experiment_name="diabetes")).body
        experiment = named["experiment"]["experiment_id"]
        runs = api.send(post("runs/search", {"experiment_ids": [experiment]})).body["runs"]
        yield Data(server.url, api, experiment, runs)
        api.close()


def _train(url: str, folder: Path) -> None:
    """In a new experiment; it has nothing to warn of."""
    _ran(ROOT / "examples" / "train.py", url, folder, "WARNING", "Warning", "ERROR", "Traceback")


def _ran(program: Path, url: str, folder: Path, *unwanted: str) -> str:
    """What a program that uses the real client printed."""
    variables = environment(MLFLOW_TRACKING_URI=url)
    run = warm_clients.run(sys.executable, "mlflow", [str(program)], folder, variables)
    assert run.returncode == 0, run.stdout + run.stderr
    assert not any(word in run.stderr for word in unwanted), run.stderr
    return run.stdout


@pytest.fixture(scope="package")
def traces(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """The agent of traced.py has answered."""
    printed = _ran(Path(traced.__file__), data.url, tmp_path_factory.mktemp("traces"))
    return Traces(**json.loads(printed))


@pytest.fixture(scope="package")
def profile(chromium_of_playwright: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Of visitors who do not log in: the files of the UI are fetched and compiled once. Only
    browsers whose profile is a folder keep compiled code."""
    folder = tmp_path_factory.mktemp("profile")
    context = chromium_of_playwright.launch_persistent_context(
        str(folder), **_program(), **_settings()
    )
    try:
        yield context
    finally:
        context.close()


@pytest.fixture
def visitor(profile: Any, data: Data) -> Iterator[Visitor]:
    """Finds nothing of the visitor before, but for the files in the browser's cache."""
    try:
        yield _arrived(profile, data.url)
    finally:
        visited = profile.pages
        # The protocol of the developer tools needs a page, and so does the browser.
        blank = profile.new_page()
        for page in visited:
            page.close()
        stored = {"origin": data.url, "storageTypes": STORED}
        profile.new_cdp_session(blank).send("Storage.clearDataForOrigin", stored)
        profile.clear_cookies()
        profile.clear_permissions()


@contextlib.contextmanager
def visiting(
    browser: Any, url: str, login: tuple[str, str] | None = None, zone: str | None = None
) -> Iterator[Visitor]:
    """A new profile, and what the user types when the browser asks who that is.

    Args:
        zone: the time zone of the browser; None for that of this machine.
    """
    typed = None if login is None else {"username": login[0], "password": login[1]}
    context = browser.new_context(**_settings(), http_credentials=typed, timezone_id=zone)
    try:
        yield _arrived(context, url)
    finally:
        context.close()


def _settings() -> dict[str, Any]:
    return {
        "viewport": {"width": 1500, "height": 950},
        # The language of a machine without one is none that JavaScript knows.
        "locale": "en-US",
    }


def _arrived(profile: Any, url: str) -> Visitor:
    page = profile.new_page()
    page.set_default_timeout(60_000)
    return Visitor(page, url)
