"""The page of API keys: a user makes, uses, rotates and revokes keys, and sees no others. Names
are text, and a token is shown once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.browser.conftest import Data, visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, Side, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
VERA = ("vera", "password-of-vera")
KEYS = "/ajax-api/3.0/mlflow-serverless/keys"
SQL = "/ajax-api/3.0/mlflow-serverless/sql"
HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"
KEPT = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("keys")
    started = start_product(folder, "--auth", "--workspaces", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])
    with stopped(started) as server:
        side = Side(server.url)
        side.login = ADMIN
        made = side.send(post("users/create", {"username": VERA[0], "password": VERA[1]}))
        team = side.send(Call("POST", "/api/3.0/mlflow/workspaces", {"name": "team-a"}))
        assert (made.status, team.status) == (200, 201)
        side.close()
        yield server.url


def user_of(url: str, token: str) -> str | int:
    """The name of the user that a call with a key is made as; the status of a refusal."""
    answer = requests.get(
        f"{url}/api/2.0/mlflow/users/current",
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    return answer.json()["user"]["username"] if answer.ok else answer.status_code


def settled(visitor: Visitor, state: str = "drawn") -> None:
    visitor.page.locator(f"body[data-state={state}]").wait_for()


def create(visitor: Visitor, name: str, scopes: str, expiry: str, state: str = "drawn") -> None:
    page = visitor.page
    page.get_by_label("Name").fill(name)
    page.get_by_label("Scopes").fill(scopes)
    page.get_by_label("Expires").select_option(expiry)
    page.get_by_role("button", name="Create").click()
    settled(visitor, state)


def rows(visitor: Visitor) -> list[list[str]]:
    return [text.split("\t") for text in visitor.page.locator("#list tr").all_inner_texts()]


def test_user_makes_uses_rotates_and_revokes_keys(browser: Any, url: str) -> None:
    with visiting(browser, url, VERA) as visitor:
        page = visitor.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visitor.expected.add(("POST", SQL, 403))
        page.goto(f"{url}/dashboards")
        page.get_by_role("link", name="API keys").click()
        settled(visitor)
        visitor.looks("keys-none", "You have no API keys.")

        create(visitor, HOSTILE, "read\nexperiment:0", "in 90 days")
        token = page.locator("#token").inner_text()
        visitor.looks("keys-made", "is shown only now", HOSTILE)
        [row] = rows(visitor)
        assert row[:3] == [HOSTILE, "read, experiment:0", "default"]
        assert (row[4] > row[3], row[5]) == (True, "never")
        page.get_by_role("button", name="Copy").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == token
        assert token not in page.evaluate(KEPT)
        assert user_of(url, token) == "vera"
        made = requests.post(
            f"{url}/api/2.0/mlflow/experiments/create",
            headers={"Authorization": f"Bearer {token}"},
            json={"name": "beyond the scopes"},
            timeout=30,
        )
        assert made.status_code == 403

        page.get_by_role("button", name="Rotate").click()
        page.get_by_text("The old key ends within a day.").wait_for()
        settled(visitor)
        rotated = page.locator("#token").inner_text()
        assert rotated != token
        assert [user_of(url, key) for key in (token, rotated)] == ["vera", "vera"]
        assert [listed[:2] for listed in rows(visitor)] == [row[:2]] * 2
        assert len({listed[5] for listed in rows(visitor)} - {"never"}) == 1, "the day of use"

        # Such a page may be kept and shown again.
        page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        assert rotated not in page.content()
        page.reload()
        settled(visitor)
        assert rotated not in page.content()

        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Revoke").first.click()
        assert user_of(url, token) == "vera"
        for left in (1, 0):
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Revoke").first.click()
            settled(visitor)
            assert len(rows(visitor)) == left
        assert [user_of(url, key) for key in (token, rotated)] == [401, 401]

        visitor.expected.add(("POST", KEYS, 400))
        for scopes in ("read ", "\n", " "):
            create(visitor, "refused", scopes, "never", state="failed")
        create(visitor, "refused", HOSTILE, "never", state="failed")
        visitor.looks("keys-refused", "Invalid scope '<img src=x", "You have no API keys.")
        assert page.locator("img").count() == 0
        assert page.title() == "API keys"


def test_key_without_scopes_and_end_is_seen_by_its_owner_only(browser: Any, url: str) -> None:
    with visiting(browser, url, VERA) as visitor:
        page = visitor.page
        page.goto(f"{url}/dashboards/keys")
        settled(visitor)
        create(visitor, "nightly", "", "never")
        [row] = rows(visitor)
        assert (row[0], row[1], row[4]) == ("nightly", "all of your rights", "never")
        token = page.locator("#token").inner_text()
    with visiting(browser, url, ADMIN) as visitor:
        visitor.page.goto(f"{url}/dashboards/keys")
        visitor.looks("keys-others", "You have no API keys.")
    with visiting(browser, url, (VERA[0], token)) as visitor:
        visitor.expected.add(("GET", KEYS, 403))
        visitor.page.goto(f"{url}/dashboards/keys")
        settled(visitor, "failed")
        assert rows(visitor) == []
    with visiting(browser, url) as visitor:
        answer = visitor.page.goto(f"{url}/dashboards/keys")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)


def test_key_of_another_workspace(browser: Any, url: str) -> None:
    with visiting(browser, url, ADMIN) as visitor:
        visitor.page.goto(f"{url}/dashboards/keys?workspace=team-a")
        settled(visitor)
        create(visitor, "of the team", "read", "in a year")
        assert [row[:3] for row in rows(visitor)] == [["of the team", "read", "team-a"]]


def test_server_without_a_login_says_so(visitor: Visitor, data: Data) -> None:
    visitor.expected.add(("GET", KEYS, 404))
    visitor.page.goto(f"{data.url}/dashboards/keys")
    settled(visitor, "failed")
    visitor.looks("keys-no-login", "API keys need a login, and this server asks for none.")
    assert visitor.page.get_by_role("button", name="Create").is_disabled()
