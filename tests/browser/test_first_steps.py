"""The examples of docs/first-steps.md do what the page says, and the UI shows what they logged.

``make screenshots`` runs this test and copies its pictures into the documents.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, get
from tests.documented_examples import FIRST_STEPS, run_first_steps
from tests.engines import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PICTURES = ("first-steps-chart", "first-steps-model", "first-steps-trace")
WIDE = {"width": 1200, "height": 640}


def test_the_pages_show_what_the_examples_logged(
    visitor: Visitor, data: Data, tmp_path: Path
) -> None:
    printed = run_first_steps(data.url, tmp_path)
    assert any(line.startswith("depth 8 0.0588") for line in printed)
    assert "['answer', 'search']" in printed
    assert len(FIRST_STEPS) == 2
    visitor.page.set_viewport_size(WIDE)
    named = {
        name: data.ask(get("experiments/get-by-name", experiment_name=name))["experiment"][
            "experiment_id"
        ]
        for name in ("first steps", "first agent")
    }
    experiment = named["first steps"]
    visitor.open(f"/experiments/{experiment}/runs")
    visitor.looks("runs-of-first-steps", "depth 2", "depth 4", "depth 8", "3 matching runs")
    visitor.go(f"/experiments/{experiment}/runs?compareRunsMode=CHART")
    visitor.looks("first-steps-chart", "loss", "depth 8")
    visitor.go("/models/first%20model")
    visitor.looks("first-steps-model", "first model", "Version 1", "champion")
    location = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": named["first agent"]},
    }
    search = Call("POST", "/api/3.0/mlflow/traces/search", {"locations": [location]})
    [trace] = data.ask(search)["traces"]
    visitor.go(f"/experiments/{named['first agent']}/traces/{trace['trace_id']}")
    visitor.looks("first-steps-trace", "answer", "search")


def test_the_page_shows_each_picture() -> None:
    page = (ROOT / "docs/first-steps.md").read_text()
    for name in PICTURES:
        assert f"(images/{name}.png)" in page
        assert (ROOT / f"docs/images/{name}.png").is_file()
