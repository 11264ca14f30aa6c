"""The bar on MLflow's page: it links to the server's own pages, covers nothing of MLflow, can be
hidden, and shows the first commands while there are no runs. It holds no text of users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Side, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"
GREETING = "This server has no runs yet."
LINKS = {
    "/dashboards": "Dashboards",
    "/dashboards/start": "First commands",
    "/dashboards/trash": "Trash",
}
DARK = "localStorage.setItem('_mlflow_dark_mode_toggle_enabled', 'true')"
LAYOUT = """() => {
    const box = (element) => element.getBoundingClientRect();
    const [bar, root] = ["serverless-bar", "root"].map((id) => box(document.getElementById(id)));
    const page = document.documentElement;
    return {
        below: root.top >= bar.bottom,
        ends: Math.round(root.bottom) - innerHeight,
        scrolls: [page.scrollHeight > innerHeight, page.scrollWidth > innerWidth],
    };
}"""
FITS = {"below": True, "ends": 0, "scrolls": [False, False]}


class Admin(Side):
    """The administrator of a running server."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url
        self.login = ADMIN


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[Admin]:
    """The administrator of a fresh server."""
    started = start_product(tmp_path, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])
    with stopped(started) as server:
        side = Admin(server.url)
        yield side
        side.close()


def drawn(visitor: Visitor, path: str = "/experiments") -> Any:
    visitor.open(path)
    bar = visitor.page.locator("#serverless-bar[data-state=drawn]")
    bar.wait_for()
    return bar


def test_a_fresh_server_is_greeted_until_it_has_a_run(browser: Any, admin: Admin) -> None:
    url = admin.url
    with visiting(browser, url, ADMIN) as visitor:
        page = visitor.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        bar = drawn(visitor)
        visitor.looks("bar-fresh", GREETING, f"export MLFLOW_TRACKING_URI={url}")
        assert page.evaluate(LAYOUT) == FITS
        assert bar.locator("code").count() == 3
        bar.get_by_role("button", name="Copy").nth(1).click()
        bar.get_by_text("Copied.").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == f"export MLFLOW_TRACKING_URI={url}"

        # A deleted run is one all the same.
        created = admin.send(post("runs/create", {"experiment_id": "0"}))
        run_id = created.body["run"]["info"]["run_id"]
        assert admin.send(post("runs/delete", {"run_id": run_id})).status == 200
        bar = drawn(visitor)
        assert bar.locator("code").count() == 0
        shown = {link.get_attribute("href"): link.inner_text() for link in bar.locator("a").all()}
        assert shown == LINKS
        page.evaluate(DARK)
        drawn(visitor)
        visitor.looks("bar-dark", *LINKS.values())
        assert page.evaluate(LAYOUT) == FITS
        bar.get_by_role("link", name="Trash").click()
        page.wait_for_url(f"{url}/dashboards/trash")


def test_names_of_users_are_not_in_the_bar_that_stays_hidden(browser: Any, admin: Admin) -> None:
    """A second experiment ends the greeting; its name, and one in the address, go nowhere."""
    made = admin.send(post("experiments/create", {"name": HOSTILE}))
    assert made.status == 200
    answers: list[Any] = []

    def record(answer: Any) -> None:
        answers.append(answer)

    with visiting(browser, admin.url, ADMIN) as visitor:
        visitor.page.on("response", record)
        bar = drawn(visitor, f"/experiments?name={HOSTILE}")
        assert bar.inner_text().split() == ["Dashboards", "First", "commands", "Trash", "Hide"]
        assert (bar.locator("img").count(), visitor.page.title()) == (0, "Experiments - MLflow")
        visitor.looks("bar-hostile", HOSTILE)
        [page] = [answer for answer in answers if answer.url.split("#")[0] == f"{admin.url}/"]
        assert page.headers["x-frame-options"] == "SAMEORIGIN"
        assert "content-security-policy" not in page.headers

        bar.get_by_role("button", name="Hide").click()
        for again in (False, True):
            if again:
                visitor.open("/experiments")
            assert visitor.page.locator("#serverless-bar").count() == 0
            height = "document.getElementById('root').getBoundingClientRect().height - innerHeight"
            assert visitor.page.evaluate(height) == 0
        visitor.looks("bar-hidden", "Experiments")
