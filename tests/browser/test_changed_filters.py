"""Filters of the dashboards that change while queries run: the page then shows what a new visit
would show, and sends no query whose answer nobody would see."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import Data, visiting
from tests.browser.drawn_cards import SHOWN, SQL, draw_only
from tests.differential.rest import Call, post

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
CARDS = ("failures", "lengths", "best", "reliability")
ABOVE = "() => [...document.querySelectorAll('#totals, #told')].map((one) => one.textContent)"


class Requests:
    """The queries that a page sends. It can hold them back."""

    def __init__(self, page: Any) -> None:
        self.page, self.sent, self.held, self.holds = page, list[str](), list[Any](), False
        page.route(f"**{SQL}", self._route)

    def _route(self, route: Any) -> None:
        self.sent.append(json.dumps(route.request.post_data_json, sort_keys=True))
        if self.holds:
            self.held.append(route)
        else:
            route.continue_()

    def hold(self) -> None:
        self.holds = True

    def let_pass(self) -> None:
        self.holds = False
        while self.held:
            self.held.pop(0).continue_()

    def wait_for_two(self) -> None:
        """Lets single queries pass until two are held: then the page asks for its cards, and has
        more queries that wait for these."""
        while len(self.held) < 2:
            before = len(self.sent)
            self.page.wait_for_timeout(200)
            if len(self.held) == 1 and len(self.sent) == before:
                self.held.pop().continue_()


def _shown(page: Any) -> tuple[Any, Any]:
    """What the cards show, and what is above them."""
    page.locator("body[data-state=drawn]").wait_for(timeout=100_000)
    cards = page.evaluate(SHOWN)
    for card in cards.values():
        del card["sql"]  # with the moment of the visit
    return cards, page.evaluate(ABOVE)


def test_changes_before_the_answers_of_the_last_one(browser: Any, data: Data) -> None:
    experiment = data.ask(post("experiments/create", {"name": "of one run"}))["experiment_id"]
    data.ask(post("runs/create", {"experiment_id": experiment, "start_time": 1_760_000_000_000}))
    data.ask(post("runs/create", {"experiment_id": "0", "start_time": 1_760_000_000_000}))
    data.ask(
        Call("POST", f"/api{SQL.removeprefix('/ajax-api')}", {"sql": "SELECT 1", "fresh": True})
    )
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        draw_only(page, "runs", CARDS)
        requests = Requests(page)
        page.goto(f"{data.url}/dashboards")
        before = _shown(page)

        # The page waits for the times of the rows that the new filter leaves.
        requests.hold()
        page.locator("select[name=experiment]").select_option(experiment)
        page.locator("#best select[name=order]").select_option("highest")
        requests.let_pass()
        shown = _shown(page)
        assert shown[1] != before[1]

        # The page waits for two of its cards, and others are to follow.
        requests.hold()
        page.locator("#presets button[value='7d']").click()
        requests.wait_for_two()
        sent = len(requests.sent)
        page.locator("#best select[name=order]").select_option("lowest")
        requests.let_pass()
        again = _shown(page)
        assert again[1] != shown[1]
        later = requests.sent[sent:]
        assert len(later) == len(set(later)) > len(CARDS)

        page.reload()
        assert _shown(page) == again
