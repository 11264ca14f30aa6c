"""The page of the trash: what is deleted is listed, restored, and removed for good after a dry run.
Names are text, and users without rights change nothing. And the page of the first commands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Data, visiting
from tests.browser.drawn_cards import ask_nothing
from tests.browser.visitor import Visitor
from tests.differential.rest import Side, get, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
VERA = ("vera", "password-of-vera")
TRASH = "/ajax-api/3.0/mlflow-serverless/trash"
MOVE = "/ajax-api/3.0/mlflow-serverless/runs/move"
HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"


class Admin(Side):
    """The administrator of a running server. ``old_run`` was written to before the tests, at
    ``old_since`` on the clock of :func:`time.monotonic`."""

    old_run: str
    old_since: float

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url
        self.login = ADMIN


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    folder = tmp_path_factory.mktemp("trash")
    started = start_product(folder, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])
    with stopped(started) as server:
        side = Admin(server.url)
        made = side.send(post("users/create", {"username": VERA[0], "password": VERA[1]}))
        assert made.status == 200
        old = side.send(post("runs/create", {"experiment_id": "0"}))
        side.old_run, side.old_since = old.body["run"]["info"]["run_id"], time.monotonic()
        yield side
        side.close()


def ask(side: Side, path: str, **fields: Any) -> dict[str, Any]:
    answer = side.send(post(path, fields))
    assert answer.status == 200, answer
    body: dict[str, Any] = answer.body
    return body


def deleted_runs(side: Side, experiment: str, *names: str) -> list[str]:
    made = [
        ask(side, "runs/create", experiment_id=experiment, run_name=name)["run"]["info"]["run_id"]
        for name in names
    ]
    for run_id in made:
        ask(side, "runs/delete", run_id=run_id)
    return made


def settled(visitor: Visitor, state: str = "drawn") -> None:
    visitor.page.locator(f"body[data-state={state}]").wait_for()


def rows(visitor: Visitor) -> list[list[str]]:
    texts = visitor.page.locator("#list tr").all_inner_texts()
    return [text.strip("\t\n").split("\t") for text in texts]


def choose(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("row").filter(has_text=name).get_by_role("checkbox").check()


def test_runs_are_restored_and_removed_for_good(browser: Any, admin: Admin) -> None:
    experiment = ask(admin, "experiments/create", name=f"a {HOSTILE}")["experiment_id"]
    kept, removed, restored = deleted_runs(admin, experiment, "keep", HOSTILE, "restore me")
    with visiting(browser, admin.url, ADMIN) as visitor:
        page = visitor.page
        ask_nothing(page)
        page.goto(f"{admin.url}/dashboards")
        page.get_by_role("link", name="Trash").click()
        settled(visitor)
        page.get_by_label("Experiment").select_option(experiment)
        settled(visitor)
        visitor.looks("trash", HOSTILE, "restore me")
        assert {row[2] for row in rows(visitor)} == {kept, removed, restored}
        assert page.get_by_role("button", name="Restore").is_disabled()

        choose(visitor, "restore me")
        page.get_by_role("button", name="Restore").click()
        page.get_by_text("Restored: 1 runs.").wait_for()
        settled(visitor)
        assert {row[2] for row in rows(visitor)} == {kept, removed}

        choose(visitor, removed)
        page.get_by_role("button", name="Remove for good…").click()
        page.get_by_text("Remove 1 runs for good?").wait_for()
        visitor.looks("trash-question", f"run {HOSTILE} {removed}")
        page.get_by_role("button", name="Cancel").click()
        settled(visitor)
        assert len(rows(visitor)) == 2
        page.get_by_role("button", name="Remove for good…").click()
        page.locator("#sure").click()
        page.get_by_text("Removed: 1 runs.").wait_for()
        settled(visitor)
        assert [row[2] for row in rows(visitor)] == [kept]
        assert (page.locator("img").count(), page.title()) == (0, "Trash")
        visitor.looks("trash-after")
    statuses = {
        run_id: admin.send(get("runs/get", run_id=run_id)).status
        for run_id in (kept, removed, restored)
    }
    assert statuses == {kept: 200, removed: 404, restored: 200}
    stage = admin.send(get("runs/get", run_id=restored)).body["run"]["info"]["lifecycle_stage"]
    assert stage == "active"


def test_a_deleted_experiment_goes_as_a_whole(browser: Any, admin: Admin) -> None:
    experiment = ask(admin, "experiments/create", name="whole")["experiment_id"]
    ask(admin, "runs/create", experiment_id=experiment)
    ask(admin, "experiments/delete", experiment_id=experiment)
    with visiting(browser, admin.url, ADMIN) as visitor:
        page = visitor.page
        page.goto(f"{admin.url}/dashboards/trash?experiment={experiment}")
        settled(visitor)
        page.get_by_label("All", exact=True).check()
        page.get_by_role("button", name="Restore").click()
        page.get_by_text("Restored: 1 experiments.").wait_for()
        settled(visitor)
        visitor.looks("trash-none", "Nothing of this experiment is in the trash.")
        ask(admin, "experiments/delete", experiment_id=experiment)
        page.reload()
        settled(visitor)
        page.get_by_label("All", exact=True).check()
        page.get_by_role("button", name="Remove for good…").click()
        page.locator("#sure").click()
        page.get_by_text("Removed: 1 experiments.").wait_for()
        settled(visitor)
        visitor.looks("trash-experiment")
    assert admin.send(get("experiments/get", experiment_id=experiment)).status == 404


def test_users_without_rights_change_nothing(browser: Any, admin: Admin) -> None:
    """With the permission to read, which users have by default."""
    experiment = ask(admin, "experiments/create", name="of others")["experiment_id"]
    (run_id,) = deleted_runs(admin, experiment, "secret run")
    with visiting(browser, admin.url, VERA) as visitor:
        visitor.expected.add(("GET", TRASH, 403))
        page = visitor.page
        page.goto(f"{admin.url}/dashboards/trash?experiment={experiment}")
        settled(visitor, "failed")
        visitor.looks("trash-refused", "Permission denied")
        assert rows(visitor) == []
        assert "secret run" not in page.content()
        for path in ("restore", "purge"):
            status = page.evaluate(
                """([path, body]) => fetch(path, {
                    method: "POST",
                    body: JSON.stringify(body),
                    headers: {"Content-Type": "application/json"},
                }).then((reply) => reply.status)""",
                [f"{TRASH}/{path}", {"experiment_id": experiment, "run_ids": [run_id]}],
            )
            assert status == 403
    stage = admin.send(get("runs/get", run_id=run_id)).body["run"]["info"]["lifecycle_stage"]
    assert stage == "deleted"
    with visiting(browser, admin.url) as visitor:
        answer = visitor.page.goto(f"{admin.url}/dashboards/trash")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)


def test_runs_are_moved(browser: Any, admin: Admin) -> None:
    """A run that was just written to is refused; after a minute it would move."""
    source, target = (
        ask(admin, "experiments/create", name=f"{name} {HOSTILE}")["experiment_id"]
        for name in ("from", "to")
    )
    fresh = ask(admin, "runs/create", experiment_id=source)["run"]["info"]["run_id"]

    def experiment(run_id: str) -> str:
        experiment_id: str = admin.send(get("runs/get", run_id=run_id)).body["run"]["info"][
            "experiment_id"
        ]
        return experiment_id

    with visiting(browser, admin.url, ADMIN) as visitor:
        visitor.expected.add(("POST", MOVE, 400))
        page = visitor.page
        page.goto(f"{admin.url}/dashboards/trash?experiment={source}")
        settled(visitor)
        page.get_by_label("Run ids").fill(f" {fresh}\n{fresh} ")
        page.locator("#target").select_option(target)
        page.get_by_role("button", name="Move", exact=True).click()
        settled(visitor, "failed")
        visitor.looks("trash-move-refused", "was written to within the last 60 seconds")
        assert experiment(fresh) == source
        page.wait_for_timeout(max(0.0, admin.old_since + 61 - time.monotonic()) * 1000)
        page.get_by_label("Run ids").fill(admin.old_run)
        page.get_by_role("button", name="Move", exact=True).click()
        page.get_by_text("Moved: 1 of 1 runs.").wait_for()
        settled(visitor)
        visitor.looks("trash-moved")
        assert (page.locator("img").count(), page.title()) == (0, "Trash")
    assert experiment(admin.old_run) == target


def test_the_first_commands_are_shown_and_copied(visitor: Visitor, data: Data) -> None:
    page = visitor.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{data.url}/dashboards/start")
    visitor.looks("start", "pip install mlflow", f"export MLFLOW_TRACKING_URI={data.url}")
    assert page.locator(".command").count() == 3
    page.get_by_role("button", name="Copy").nth(1).click()
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"export MLFLOW_TRACKING_URI={data.url}"
    links = {link.get_attribute("href") for link in page.locator("a").all()}
    assert {"/", "/dashboards", "/dashboards/trash", "/dashboards/keys"} <= links
