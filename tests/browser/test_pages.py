"""The pages of the UI with real data: they show it, and nothing goes wrong on them."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.differential.rest import post

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]


def test_home_and_experiments(visitor: Visitor, data: Data) -> None:
    # The home page shows the newest.
    data.ask(post("experiments/create", {"name": "the newest of all"}))
    visitor.open("/")
    visitor.looks("home", "the newest of all")
    # This server collects none.
    assert visitor.page.get_by_text("collects usage data").count() == 0
    visitor.go("/settings")
    assert visitor.page.get_by_role("switch", checked=True).count() == 0
    visitor.go("/experiments")
    visitor.looks("experiments", "diabetes", "Default")


def test_runs_and_their_chart(visitor: Visitor, data: Data) -> None:
    visitor.open(f"/experiments/{data.experiment}/runs")
    visitor.looks("runs", "sweep", "5 matching runs")
    visitor.page.get_by_test_id("runs-search-autocomplete").click()
    visitor.page.keyboard.type("metrics.val_mse > 0")
    visitor.page.keyboard.press("Enter")
    visitor.looks("runs-filtered", "matching runs")
    visitor.go(f"/experiments/{data.experiment}/runs?compareRunsMode=CHART")
    visitor.looks("chart-sweep", "sweep")
    visitor.page.locator(".ag-row button").first.click()
    visitor.looks("chart", "training_score", "val_mae")


def test_run_and_its_files(visitor: Visitor, data: Data) -> None:
    trial = next(run for run in data.runs if run["info"]["run_name"] != "sweep")
    path = f"/experiments/{data.experiment}/runs/{trial['info']['run_id']}"
    visitor.open(path)
    visitor.looks("run", trial["info"]["run_name"], "val_mse", "learning_rate", "Finished")
    visitor.go(f"{path}/model-metrics")
    visitor.looks("run-metrics", "training_score", "val_mae")
    visitor.go(f"{path}/system-metrics")
    visitor.looks("run-system-metrics")
    _look_at_files(visitor, f"{path}/artifacts")
    sweep = next(run for run in data.runs if run["info"]["run_name"] == "sweep")
    visitor.go(f"/experiments/{data.experiment}/runs/{sweep['info']['run_id']}")
    visitor.looks("run-parent", "diabetes", "Child runs")


def _look_at_files(visitor: Visitor, path: str) -> None:
    visitor.go(path)
    visitor.looks("artifacts", "plots", "tables")
    # The page shows another file only when it is loaded anew.
    visitor.open(f"{path}/plots/error.png")
    visitor.looks("artifact-error", "error.png")
    shown = visitor.page.locator("img, canvas")
    assert shown.count() >= 1
    visitor.open(f"{path}/tables/worst.json")
    visitor.looks("artifact-table", "expected", "predicted")


def test_registered_model(visitor: Visitor, data: Data) -> None:
    data.ask(post("registered-models/create", {"name": "diabetes model"}))
    run_id = data.runs[0]["info"]["run_id"]
    version = {"name": "diabetes model", "source": f"runs:/{run_id}/model", "run_id": run_id}
    data.ask(post("model-versions/create", {**version, "source": "s3://elsewhere/model"}))
    visitor.open("/models")
    visitor.looks("models", "diabetes model", "Version 1")
    visitor.go("/models/diabetes%20model")
    visitor.looks("model", "diabetes model", "Version 1")


def test_compare(visitor: Visitor, data: Data) -> None:
    run_ids = [run["info"]["run_id"] for run in data.runs[:3]]
    wanted = f"runs={quote(json.dumps(run_ids))}&experiments={quote(json.dumps([data.experiment]))}"
    visitor.open(f"/compare-runs?{wanted}")
    visitor.looks("compare", "Comparing 3 Runs")
