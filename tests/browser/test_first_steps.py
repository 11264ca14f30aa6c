"""The examples of docs/first-steps.md do what the page says, and the UI shows what they logged.

``make screenshots`` runs this test and copies its pictures into the documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, Side, get
from tests.documented_examples import FIRST_STEPS, run_first_steps
from tests.engines import ROOT
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PICTURES = ("first-steps-chart", "first-steps-model", "first-steps-trace")
WIDE = {"width": 1200, "height": 640}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("first_steps")
    with stopped(start_product(folder)) as product:
        printed = run_first_steps(product.url, folder)
        assert any(line.startswith("depth 8 0.0588") for line in printed)
        assert "['answer', 'search']" in printed
        assert len(FIRST_STEPS) == 2
        yield str(product.url)


@pytest.fixture
def newcomer(browser: Any, url: str) -> Iterator[Visitor]:
    with visiting(browser, url) as visitor:
        visitor.page.set_viewport_size(WIDE)
        yield visitor


def test_the_pages_show_what_the_examples_logged(newcomer: Visitor, url: str) -> None:
    api = Side(url)
    named = {
        name: api.send(get("experiments/get-by-name", experiment_name=name)).body["experiment"][
            "experiment_id"
        ]
        for name in ("first steps", "first agent")
    }
    experiment = named["first steps"]
    newcomer.open(f"/experiments/{experiment}/runs")
    newcomer.looks("runs-of-first-steps", "depth 2", "depth 4", "depth 8", "3 matching runs")
    newcomer.go(f"/experiments/{experiment}/runs?compareRunsMode=CHART")
    newcomer.looks("first-steps-chart", "loss", "depth 8")
    newcomer.go("/models/first%20model")
    newcomer.looks("first-steps-model", "first model", "Version 1", "champion")
    location = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": named["first agent"]},
    }
    search = Call("POST", "/api/3.0/mlflow/traces/search", {"locations": [location]})
    [trace] = api.send(search).body["traces"]
    newcomer.go(f"/experiments/{named['first agent']}/traces/{trace['trace_id']}")
    newcomer.looks("first-steps-trace", "answer", "search")
    api.close()


def test_the_page_shows_each_picture() -> None:
    page = (ROOT / "docs/first-steps.md").read_text()
    for name in PICTURES:
        assert f"(images/{name}.png)" in page
        assert (ROOT / f"docs/images/{name}.png").is_file()
