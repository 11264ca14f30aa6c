"""The UI where there are workspaces: one is chosen, shown, left, and made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.visitor import Visitor
from tests.differential.rest import Call, Ref, Side, post
from tests.servers import Server, start_product, stopped

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]

TEAMS = ("team-a", "team-b")


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Side]]:
    folder = tmp_path_factory.mktemp("teams")
    with stopped(start_product(folder, "--workspaces", INDEX_LAG_MS="0")) as server:
        side = Side(server.url)
        for team in TEAMS:
            _must(side, Call("POST", "/api/3.0/mlflow/workspaces", {"name": team}))
            for call in _work(team):
                _must(side, call._replace(workspace=team))
        yield server, side
        side.close()


def _must(side: Side, call: Call) -> None:
    reply = side.send(call)
    assert reply.status in (200, 201), (call, reply)


def _work(team: str) -> list[Call]:
    experiment, run = f"experiment of {team}", f"run of {team}"
    path = f"{{{{{experiment}}}}}/{{{{{run}}}}}/artifacts/note.txt"
    body = {"experiment_id": Ref(experiment), "run_name": run, "start_time": 1_700_000_000_000}
    metric = {"run_id": Ref(run), "key": "accuracy", "value": 0.5, "timestamp": 1}
    return [
        post("experiments/create", {"name": experiment}, saves={experiment: "experiment_id"}),
        post("runs/create", body, saves={run: "run.info.run_id"}),
        post("runs/log-metric", metric),
        post("registered-models/create", {"name": f"model of {team}"}),
        Call(
            "PUT",
            f"/api/2.0/mlflow-artifacts/artifacts/{path}",
            raw=f"written by {team}".encode(),
            content_type="application/octet-stream",
        ),
    ]


@pytest.fixture
def visitor(browser: Any, teams: tuple[Server, Side]) -> Iterator[Visitor]:
    context = browser.new_context(viewport={"width": 1500, "height": 950}, locale="en-US")
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield Visitor(page, teams[0].url)
    context.close()


def test_one_is_chosen_and_left(visitor: Visitor, teams: tuple[Server, Side]) -> None:
    visitor.open("/")
    visitor.looks("workspaces", "Select a workspace", *TEAMS)
    visitor.page.get_by_text("team-a", exact=True).locator("visible=true").first.click()
    visitor.settle()
    assert "workspace=team-a" in visitor.page.url
    visitor.go("/experiments?workspace=team-a")
    visitor.looks("workspace-experiments", "experiment of team-a")
    assert visitor.page.get_by_text("experiment of team-b").count() == 0
    visitor.open("/models?workspace=team-b")
    visitor.looks("workspace-models", "model of team-b")
    assert visitor.page.get_by_text("model of team-a").count() == 0


def test_a_run_and_its_file(visitor: Visitor, teams: tuple[Server, Side]) -> None:
    values = teams[1].values
    for team in TEAMS:
        path = f"/experiments/{values[f'experiment of {team}']}/runs/{values[f'run of {team}']}"
        visitor.open(f"{path}?workspace={team}")
        visitor.looks(f"workspace-run-{team}", f"run of {team}", "accuracy")
        visitor.go(f"{path}/artifacts/note.txt?workspace={team}")
        visitor.looks(f"workspace-file-{team}", f"written by {team}")


def test_one_is_made(visitor: Visitor) -> None:
    visitor.open("/")
    visitor.page.get_by_role("button", name="Create new workspace").click()
    visitor.page.get_by_role("dialog").get_by_role("textbox").first.fill("team-c")
    visitor.page.get_by_role("dialog").get_by_role("button", name="Create").last.click()
    visitor.settle()
    visitor.open("/")
    visitor.looks("workspace-made", "team-c")
