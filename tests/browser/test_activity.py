"""The page of who did what: administrators see all of it, who manages an experiment its part, and
nobody else anything. Times are the reader's, and what users typed is text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from tests.browser.conftest import Data, visiting
from tests.browser.drawn_cards import ask_nothing
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, Side, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
ANN, EVE = ("ann", "password-of-ann"), ("eve", "password-of-eve")
ACTIVITY = "/ajax-api/3.0/mlflow-serverless/activity"
HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"
MANY = 60
"""Tags that are set, one a request: more than a page has."""


class Office(NamedTuple):
    url: str
    of_ann: str
    """The id of the experiment that ann made."""
    of_admin: str


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    started = start_product(
        tmp_path_factory.mktemp("activity"),
        "--auth",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(started) as server:
        side = Side(server.url)

        def send(login: tuple[str, str], call: Call, status: int = 200) -> Any:
            side.login = login
            answer = side.send(call)
            assert answer.status == status, answer
            return answer.body

        for name, password in (ANN, EVE):
            send(ADMIN, post("users/create", {"username": name, "password": password}))
        send(ADMIN, post("users/create", {"username": HOSTILE, "password": "password of nobody"}))
        experiments = [
            send(login, post("experiments/create", {"name": f"of {login[0]}"}))["experiment_id"]
            for login in (ANN, ADMIN)
        ]
        made = send(ANN, post("runs/create", {"experiment_id": experiments[0], "start_time": 1}))
        run = {"run_id": made["run"]["info"]["run_id"]}
        for number in range(MANY):
            send(ANN, post("runs/set-tag", {**run, "key": f"k{number}", "value": "v"}))
        send(EVE, post("runs/delete", run), 403)
        send(ADMIN, post("registered-models/create", {"name": HOSTILE}))
        yield Office(server.url, *experiments)
        side.close()


def settled(visitor: Visitor, state: str = "drawn") -> None:
    visitor.page.locator(f"body[data-state={state}]").wait_for(timeout=100_000)


def rows(visitor: Visitor) -> list[list[str]]:
    return [text.split("\t") for text in visitor.page.locator("#list tr").all_inner_texts()]


def head(visitor: Visitor) -> list[str]:
    return visitor.page.locator("#head th").all_inner_texts()


def choose(visitor: Visitor, name: str, text: str) -> list[list[str]]:
    field = visitor.page.locator(f"[name={name}]")
    if name == "outcome":
        field.select_option(text)
    else:
        field.fill(text)
        field.press("Tab")
    settled(visitor)
    return rows(visitor)


def test_administrator_sees_filters_and_turns_pages(browser: Any, office: Office) -> None:
    zone = "Pacific/Chatham"  # 12:45 or 13:45 hours ahead of UTC
    with visiting(browser, office.url, ADMIN, zone) as visitor:
        page = visitor.page
        ask_nothing(page)
        page.goto(f"{office.url}/dashboards")
        page.get_by_role("link", name="Activity").click()
        settled(visitor)
        page.get_by_role("button", name="Refresh").click()
        page.locator("#refresh:enabled").wait_for(timeout=100_000)
        visitor.looks("activity", "Times are in the time zone of this browser (Pacific/Chatham)")
        assert head(visitor) == [
            *("time", "user", "request", "outcome", "about", "login", "address", "workspace")
        ]
        first = rows(visitor)
        assert len(first) == 50
        # Before somebody types who that is, the browser asks without a login.
        last, before, *_ = [row for row in first if row[1] != "nobody"]
        assert last[1:3] == ["admin", "POST /2.0/mlflow/registered-models/create"]
        assert last[3] == "done (200)"
        assert last[4] == f"name {HOSTILE}"
        assert before[1:4] == ["eve", "POST /2.0/mlflow/runs/delete", "refused (403)"]
        shown = datetime.fromisoformat(last[0]).replace(tzinfo=ZoneInfo(zone))
        assert abs(time.time() - shown.timestamp()) < 280
        page.get_by_role("button", name="Earlier").click()
        settled(visitor)
        both = rows(visitor)
        assert both[:50] == first
        assert len(both) > MANY
        assert page.get_by_role("button", name="Earlier").is_hidden()
        assert [row[0] for row in both] == sorted((row[0] for row in both), reverse=True)

        assert {row[1] for row in choose(visitor, "user", "eve")} == {"eve"}
        [row] = choose(visitor, "outcome", "refused")
        assert row[2].endswith("runs/delete")
        assert parse_qs(urlsplit(page.url).query) == {"user": ["eve"], "outcome": ["refused"]}
        page.reload()
        settled(visitor)
        assert rows(visitor) == [row]
        assert choose(visitor, "rpc", "experiments/create") == []
        visitor.looks("activity-none", "Nobody did anything of this kind.")

        page.goto(f"{office.url}/dashboards/activity?about_user=ann")
        settled(visitor)
        assert [row[2] for row in rows(visitor)] == ["POST /2.0/mlflow/users/create"]
        page.goto(f"{office.url}/dashboards/activity")
        settled(visitor)
        [row] = choose(visitor, "model", HOSTILE)
        assert row[4] == f"name {HOSTILE}"
        assert page.title() == "Activity"
        assert page.locator("#list img").count() == 0

        # Minutes of the reader's zone.
        page.goto(f"{office.url}/dashboards/activity")
        settled(visitor)
        now = datetime.now(ZoneInfo(zone))
        assert choose(visitor, "until", f"{now.year - 1}-01-01T00:00") == []
        assert len(choose(visitor, "until", "")) == 50
        whole = choose(visitor, "since", f"{now:%Y-%m-%d}T00:00")
        assert whole or now.hour == 0
        assert re.fullmatch(r"since=\d{13}", urlsplit(page.url).query)
        assert choose(visitor, "since", f"{now.year + 1}-01-01T00:00") == []
        page.reload()
        settled(visitor)
        assert page.locator("[name=since]").input_value() == f"{now.year + 1}-01-01T00:00"
        page.set_viewport_size({"width": 390, "height": 844})
        page.emulate_media(color_scheme="dark")
        page.goto(f"{office.url}/dashboards/activity")
        settled(visitor)
        visitor.looks("activity-phone-dark", "Activity")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_who_manages_an_experiment_sees_its_part(browser: Any, office: Office) -> None:
    with visiting(browser, office.url, ANN) as visitor:
        page = visitor.page
        visitor.expected.add(("POST", ACTIVITY, 403))
        page.goto(f"{office.url}/dashboards/activity")
        settled(visitor, "failed")
        visitor.looks("activity-whose", "Who may manage an experiment sees what was done to it")
        page.get_by_label("Experiment").fill(office.of_ann)
        page.get_by_label("Experiment").press("Tab")
        settled(visitor)
        page.get_by_role("button", name="Refresh").click()
        page.locator("#refresh:enabled").wait_for(timeout=100_000)
        page.get_by_role("button", name="Earlier").click()
        settled(visitor)
        assert head(visitor) == ["time", "user", "request", "outcome", "about"]
        listed = rows(visitor)
        assert len(listed) == MANY + 3
        assert listed[0][1:4] == ["eve", "POST /2.0/mlflow/runs/delete", "refused (403)"]
        assert all(f"experiment id {office.of_ann}" in row[4] for row in listed)
        assert "127.0.0.1" not in page.locator("#list").inner_text()
        page.get_by_label("Experiment").fill(office.of_admin)
        page.get_by_label("Experiment").press("Tab")
        settled(visitor, "failed")
        assert rows(visitor) == []
        visitor.looks("activity-of-others", "Who may manage an experiment")


def test_others_see_nothing(browser: Any, office: Office) -> None:
    with visiting(browser, office.url, EVE) as visitor:
        visitor.expected.add(("POST", ACTIVITY, 403))
        for query in ("", "?user=eve", f"?experiment_id={office.of_ann}", "?experiment_id=999"):
            visitor.page.goto(f"{office.url}/dashboards/activity{query}")
            settled(visitor, "failed")
            assert rows(visitor) == []
            assert visitor.page.locator("#problem").inner_text().startswith("Administrators see")
        visitor.looks("activity-nobody", "Activity")
    with visiting(browser, office.url) as visitor:
        answer = visitor.page.goto(f"{office.url}/dashboards/activity")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)


def test_server_without_a_login_has_no_rows(visitor: Visitor, data: Data) -> None:
    visitor.page.goto(f"{data.url}/dashboards/activity")
    settled(visitor)
    visitor.looks("activity-no-login", "A server records who did what if it asks for a login.")
