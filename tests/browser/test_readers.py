"""Readers of the system tables: an administrator grants them on a page, and they see the rows of
their workspaces and no others, on the page and in its CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.browser.conftest import visiting
from tests.browser.drawn_cards import ask_nothing, draw_only
from tests.differential.rest import Call, Side, post
from tests.servers import ADMIN, start_product, stopped

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
VERA = ("vera", "password-of-vera")
TEAMS = ("team-a", "team-b")
READERS = "/ajax-api/3.0/mlflow-serverless/system-tables/readers"


class Teams(NamedTuple):
    url: str
    experiments: dict[str, str]
    """Ids by workspace."""


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """A run in each workspace; vera has no rights at all."""
    started = start_product(
        tmp_path_factory.mktemp("readers"),
        "--auth",
        "--workspaces",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(started) as server:
        side = Side(server.url)
        side.login = ADMIN

        def ask(call: Call) -> Any:
            answer = side.send(call)
            assert answer.status in (200, 201), answer
            return answer.body

        ask(post("users/create", {"username": VERA[0], "password": VERA[1]}))
        experiments = {}
        for team in TEAMS:
            ask(Call("POST", "/api/3.0/mlflow/workspaces", {"name": team}))
            name = {"name": f"experiment of {team}"}
            made = ask(post("experiments/create", name)._replace(workspace=team))
            experiments[team] = made["experiment_id"]
            fields = {"experiment_id": experiments[team], "run_name": f"run of {team}"}
            run = ask(post("runs/create", fields)._replace(workspace=team))
            metric = {"key": "loss", "value": 1, "step": 0, "timestamp": 1}
            logged = {"run_id": run["run"]["info"]["run_id"], "metrics": [metric]}
            ask(post("runs/log-batch", logged)._replace(workspace=team))
        sql = {"sql": "SELECT 1", "fresh": True}
        ask(Call("POST", "/api/3.0/mlflow-serverless/sql", sql))
        yield Teams(server.url, experiments)
        side.close()


def test_a_reader_is_granted_and_sees_the_rows_of_a_workspace(
    browser: Any, teams: Teams, tmp_path: Path
) -> None:
    with visiting(browser, teams.url, ADMIN) as visitor:
        page = visitor.page
        ask_nothing(page)
        page.goto(f"{teams.url}/dashboards")
        page.get_by_role("link", name="Readers").click()
        visitor.looks("readers-none", "There are no readers.", *TEAMS)
        page.get_by_label("User").fill(VERA[0])
        page.get_by_label("team-a").check()
        page.get_by_role("button", name="Grant").click()
        visitor.looks("readers-granted", VERA[0])
        assert page.locator("#list tr").inner_text().split("\t")[:2] == [VERA[0], "team-a"]
        visitor.expected.add(("PUT", READERS, 400))
        page.get_by_label("User").fill(VERA[0])
        page.get_by_label("team-a").uncheck()
        page.get_by_role("button", name="Grant").click()
        visitor.looks("readers-refused", "'workspaces' names 1 to 50 workspaces")

    with visiting(browser, teams.url, VERA) as visitor:
        page = visitor.page
        visitor.expected.add(("GET", READERS, 403))
        page.goto(f"{teams.url}/dashboards/readers")
        visitor.looks("readers-forbidden", "Only administrators may see and grant readers.")
        draw_only(page, "runs", ("best", "curve"))
        page.goto(f"{teams.url}/dashboards")
        page.locator("body[data-state=drawn]").wait_for(timeout=100_000)
        visitor.looks("readers-dashboards", "run of team-a")
        for card in ("best", "curve"):
            with page.expect_download() as download:
                page.locator(f"#{card} button", has_text="CSV").click()
            download.value.save_as(tmp_path / card)
        with (tmp_path / "best").open(encoding="utf-8", newline="") as file:
            [row] = csv.DictReader(file)
        assert (row["run"], row["workspace_id"]) == ("run of team-a", "team-a")
        assert "team-b" not in page.content()
        link = page.locator("#best").get_by_role("link", name="run of team-a")
        path = f"/#/experiments/{teams.experiments['team-a']}/runs/{row['run_id']}"
        assert link.get_attribute("href") == f"{path}?workspace=team-a"

    with visiting(browser, teams.url, ADMIN) as visitor:
        page = visitor.page
        page.goto(f"{teams.url}/dashboards/readers")
        page.get_by_role("button", name="Take away").click()
        visitor.looks("readers-taken", "There are no readers.")
    with visiting(browser, teams.url, VERA) as visitor:
        visitor.expected.add(("POST", "/ajax-api/3.0/mlflow-serverless/sql", 403))
        visitor.page.goto(f"{teams.url}/dashboards")
        visitor.looks("readers-gone", "You may not read the system tables.")
