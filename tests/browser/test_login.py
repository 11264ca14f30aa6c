"""The UI where callers log in: it shows what its user may see, its account menu and its pages for
administrators work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.browser.conftest import visiting
from tests.browser.drawn_cards import draw_only
from tests.differential.rest import Call, Ref, Side, get, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
VERA = ("vera", "password-of-vera")
CURRENT = "/ajax-api/2.0/mlflow/users/current"
NO_WORKSPACES = ("GET", "/ajax-api/3.0/mlflow/workspaces", 503)
"""What MLflow's server says without workspaces, too; a dialog of the administrators asks."""


class Guarded(NamedTuple):
    url: str
    api: Side

    def status(self, login: tuple[str, str], call: Call) -> int:
        self.api.login = login
        return self.api.send(call).status


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Two experiments, one of which vera must not see."""
    folder = tmp_path_factory.mktemp("guarded")
    started = start_product(
        folder,
        "--auth",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(started) as server:
        made = Guarded(server.url, Side(server.url))
        denied = {"username": VERA[0], "resource_type": "experiment", "permission": "DENY"}
        for call in (
            post("users/create", {"username": VERA[0], "password": VERA[1]}),
            post("experiments/create", {"name": "open to all"}),
            post("experiments/create", {"name": "secret"}, saves={"secret": "experiment_id"}),
            Call(
                "POST",
                "/api/3.0/mlflow/users/permissions/grant",
                {**denied, "resource_id": Ref("secret")},
            ),
        ):
            assert made.status(ADMIN, call) == 200
        yield made
        made.api.close()


def test_nobody_is_asked_for_a_password(browser: Any, guarded: Guarded) -> None:
    with visiting(browser, guarded.url) as visitor:
        answer = visitor.page.goto(guarded.url)
        assert answer.status == 401
        assert answer.header_value("www-authenticate") == 'Basic realm="mlflow"'
        assert "You are not authenticated." in visitor.page.locator("body").inner_text()


def test_dashboards_ask_who_that_is_and_what_may_be_read(browser: Any, guarded: Guarded) -> None:
    with visiting(browser, guarded.url) as visitor:
        answer = visitor.page.goto(f"{guarded.url}/dashboards")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)
    with visiting(browser, guarded.url, VERA) as visitor:
        visitor.expected.add(("POST", "/ajax-api/3.0/mlflow-serverless/sql", 403))
        visitor.page.goto(f"{guarded.url}/dashboards")
        visitor.looks("dashboards-forbidden", "You may not read the system tables.")
    with visiting(browser, guarded.url, ADMIN) as visitor:
        draw_only(visitor.page, "runs", ("failures",))
        visitor.page.goto(f"{guarded.url}/dashboards")
        visitor.page.locator("body[data-state=drawn]").wait_for(timeout=100_000)
        visitor.looks("dashboards-empty", "No run ended in this time.")


def test_user_sees_what_is_permitted(browser: Any, guarded: Guarded) -> None:
    with visiting(browser, guarded.url, VERA) as visitor:
        visitor.open("/experiments")
        visitor.looks("login-experiments", "open to all", "Default", "vera")
        assert visitor.page.get_by_text("secret", exact=True).count() == 0
        visitor.page.get_by_text("vera", exact=True).last.click()
        menu = visitor.page.get_by_role("menu")
        menu.wait_for()
        assert menu.inner_text().split("\n") == ["Account", "Logout"]
        visitor.page.get_by_role("menuitem", name="Account").click()
        visitor.looks("login-account", "Logged in as", "You have not been assigned to any roles.")
        visitor.page.get_by_role("tab", name="Permissions").click()
        visitor.looks("login-permissions", "DENY", "Direct")


def test_logout(browser: Any, guarded: Guarded) -> None:
    """A name that nobody has takes the place of the one that the browser remembers."""
    with visiting(browser, guarded.url, VERA) as visitor:
        visitor.expected.add(("GET", CURRENT, 401))
        visitor.open("/experiments")
        visitor.page.get_by_text("vera", exact=True).last.click()
        left = visitor.page.expect_response(
            lambda answer: CURRENT in answer.url and answer.status == 401
        )
        with left:
            visitor.page.get_by_role("menuitem", name="Logout").click()
        visitor.looks("login-again", "Welcome to MLflow")


def test_administrator_makes_a_user_who_changes_the_password(
    browser: Any, guarded: Guarded
) -> None:
    first, second = "password-of-otto", "new-password-of-otto"
    with visiting(browser, guarded.url, ADMIN) as visitor:
        visitor.expected.add(NO_WORKSPACES)
        visitor.open("/admin")
        visitor.looks("login-admin", "Platform Admin", "vera")
        visitor.page.get_by_role("button", name="Create User").click()
        dialog = visitor.page.get_by_role("dialog")
        dialog.get_by_placeholder("Enter username").fill("otto")
        dialog.get_by_placeholder("Enter password").fill(first)
        dialog.get_by_role("button", name="Create user").click()
        dialog.wait_for(state="hidden")
        visitor.looks("login-created", "otto")
        visitor.page.get_by_role("tab", name="Roles").click()
        visitor.looks("login-roles", "Create a role to assign permissions to users.")
    assert guarded.status(("otto", first), get("users/current")) == 200
    with visiting(browser, guarded.url, ("otto", first)) as visitor:
        visitor.open("/account")
        visitor.page.get_by_role("button", name="Change password").click()
        dialog = visitor.page.get_by_role("dialog")
        dialog.get_by_placeholder("Enter current password").fill(first)
        dialog.get_by_placeholder("Enter new password").fill(second)
        dialog.get_by_placeholder("Confirm new password").fill(second)
        changed = visitor.page.expect_response(lambda answer: "update-password" in answer.url)
        with changed as answer:
            dialog.get_by_role("button", name="Update password").click()
        assert answer.value.status == 200
    assert guarded.status(("otto", second), get("users/current")) == 200
    assert guarded.status(("otto", first), get("users/current")) == 401
