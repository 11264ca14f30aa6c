"""Every page and tab that a link of the UI leads to, on a new profile, with the demo's data and
a skill: no request fails, no banner, no endless spinner, nothing on the console, no assistant.

The pages of one kind, those of two runs for example, are one page here. ``CRAWL=whole`` visits them
with logins and with workspaces as well.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, Side
from tests.servers import ADMIN, start_product, stopped

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
]
WHOLE: Final = os.environ.get("CRAWL") == "whole"
BEGINNINGS: Final = (
    "/",
    "/experiments",
    "/experiments/{experiment}/judges",
    "/models",
    "/prompts",
    "/gateway",
    "/mcp-registry",
    "/skills",
    "/settings",
)
OF_ACCOUNTS: Final = ("/admin", "/account")
LEAST: Final = 45
"""So many kinds of pages are found; fewer would mean that links are no longer seen."""

NAMES: Final = (
    (re.compile(r"returnTo=[^&]*"), "returnTo"),
    (re.compile(r"workflowType=\w+&?"), ""),
    (re.compile(r"workspace=[^&]*"), ""),
    (re.compile(r"\b(?:tr-)?[0-9a-f]{32}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r"\b(?:d|m|rq)-[0-9a-z]{20,}"), "ID"),
    (re.compile(r"mlflow-demo-[a-z]+|demo-[a-z]+"), "NAME"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"[?&]+$"), ""),
)
"""What pages of one kind differ in."""

AS_ON_STOCK: Final = re.compile(
    # The demo's model has no files, and its page asks for one.
    r"GET \S+/model-versions/get-artifact\?\S*path=MLmodel"
    # Pages about users, where nobody logs in.
    r"|404: GET \S+/mlflow/users/list|banner: Failed to load users\nThere are no users"
)
"""What goes wrong on MLflow's server in the same way."""


class Mode(NamedTuple):
    arguments: tuple[str, ...]
    login: tuple[str, str] | None
    workspace: str


MODES: Final = {
    "nobody logs in": Mode((), None, ""),
    "logins": Mode(("--auth",), ADMIN, ""),
    "workspaces": Mode(("--workspaces",), None, "default"),
}


def kind_of(path: str) -> str:
    for pattern, name in NAMES:
        path = pattern.sub(name, path)
    return path


@pytest.fixture(params=MODES if WHOLE else list(MODES)[:1])
def mode(request: pytest.FixtureRequest) -> Mode:
    return MODES[request.param]


@pytest.fixture
def visited(
    browser: Any, mode: Mode, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Visitor, str]]:
    """A new server with the demo, and the demo's experiment."""
    started = start_product(
        tmp_path,
        *mode.arguments,
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(started) as server:
        side = Side(server.url)
        side.login = mode.login
        made = side.send(Call("POST", "/ajax-api/3.0/mlflow/demo/generate", {}))
        assert made.status == 200, made
        skill = side.send(
            Call(
                "POST",
                "/api/3.0/mlflow/skills/weather/versions",
                {"source": "https://x.example/s.git"},
            )
        )
        assert skill.status == 200, skill
        side.close()
        with visiting(browser, server.url, mode.login) as visitor:
            yield visitor, made.body["experiment_id"]


def test_every_page_is_clean(visited: tuple[Visitor, str], mode: Mode) -> None:
    visitor, experiment = visited
    if mode.login:
        visitor.expected.add(("GET", "/ajax-api/3.0/mlflow/workspaces", 503))
    beginnings = [*BEGINNINGS, *(OF_ACCOUNTS if mode.login else OF_ACCOUNTS[:1])]
    waiting = deque(beginning.format(experiment=experiment) for beginning in beginnings)
    seen: set[str] = set()
    wrong: dict[str, list[str]] = {}
    while waiting:
        path = waiting.popleft()
        if kind_of(path) in seen:
            continue
        seen.add(kind_of(path))
        at = "&" if "?" in path else "?"
        inside = mode.workspace and "workspace=" not in path
        visitor.open(f"{path}{at}workspace={mode.workspace}" if inside else path)
        waiting.extend(_links(visitor))
        for name in _tabs(visitor):
            _close_advice(visitor)
            visitor.page.get_by_role("tab", name=name, exact=True).first.click()
            visitor.settle()
            waiting.extend(_links(visitor))
        results = [*visitor.problems, *_seen(visitor)]
        visitor.problems.clear()
        results = [problem for problem in results if not AS_ON_STOCK.search(problem)]
        if results:
            wrong[path] = results
    assert not wrong, json.dumps(wrong, indent=1)
    assert len(seen) >= LEAST, sorted(seen)


def _links(visitor: Visitor) -> list[str]:
    links = visitor.page.eval_on_selector_all(
        "a[href^='#/']", "found => found.map(link => link.getAttribute('href'))"
    )
    return [link.removeprefix("#") for link in links]


def _tabs(visitor: Visitor) -> list[str]:
    """Those that are not shown now; a tab that is a link is a page of its own."""
    chosen = "[role=tab][aria-selected=false]:not(a):not([disabled]):visible"
    return list(dict.fromkeys(visitor.page.locator(chosen).all_inner_texts()))


_ASSISTANT = ", ".join(
    f"[data-component-id{match}]"
    for match in ('*="assistant"', '$=".analyze-trace"', '$=".analyze-button"')
)


def _close_advice(visitor: Visitor) -> None:
    """What explains itself on the first visit lies over the page."""
    for button in visitor.page.get_by_role("button", name="Got it").all():
        button.click()


def _seen(visitor: Visitor) -> list[str]:
    """Banners, offers of an assistant, and what still turns after all has been answered."""
    page = visitor.page
    banners = page.locator("[role=alert]:visible").all_inner_texts()
    problems = [f"banner: {text[:200]}" for text in banners]
    if page.locator(_ASSISTANT).locator("visible=true").count():
        problems.append("an assistant is offered")
    spinner = page.locator("[aria-busy=true]:visible, [role=progressbar]:visible").first
    if spinner.count():
        try:
            spinner.wait_for(state="hidden")
        except Exception as error:
            problems.append(f"still turns: {error}"[:200])
    return problems
