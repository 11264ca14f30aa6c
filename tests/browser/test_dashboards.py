"""The dashboards in a browser: each chart shows what its SQL says, and nothing goes wrong."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import Data, visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, post
from tests.engines import ROOT
from tests.servers import environment

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
CHARTS = json.loads((ROOT / "dashboards/charts.json").read_text())["charts"]
DAY = 86_400_000
START = 1_760_000_000_000
NAME = 'fleet\'s "own" <b>'
UTILISATION = "system/gpu_{}_utilization_percentage"
SHOWN = """() => {
  const cells = (card, where) => [...card.querySelectorAll(`${where} tbody tr`)].map(
    (row) => [...row.cells].map((cell) => cell.dataset.value));
  return Object.fromEntries([...document.querySelectorAll("main > section")].map((one) => [one.id, {
    sql: one.querySelector("pre").textContent,
    cells: cells(one, ".numbers"),
    rows: cells(one, ".drawing"),
    marks: [...one.querySelectorAll("svg .mark")].map((mark) => ({...mark.dataset})),
    alert: one.querySelector("[role=alert]")?.textContent ?? "",
  }]));
}"""


@pytest.fixture(scope="module")
def fleet(data: Data) -> str:
    """An experiment beside the example's, with what that has not: GPUs, failures, a run that
    diverged and one that nobody ended. Answers its id."""
    experiment: str = data.ask(post("experiments/create", {"name": NAME}))["experiment_id"]
    for number, status in enumerate(("FINISHED", "FINISHED", "FAILED", "KILLED", "RUNNING")):
        start = START + number // 2 * DAY
        fields = {"experiment_id": experiment, "start_time": start, "user_id": f"o'{number % 2}"}
        made = data.ask(post("runs/create", {**fields, "run_name": f"fleet-{number}"}))
        run_id = made["run"]["info"]["run_id"]
        points = [
            {"key": UTILISATION.format(gpu), "value": use, "step": step, "timestamp": start + at}
            for gpu in range(2)
            for step, (at, use) in enumerate(((0, 25), (1_800_000, 50), (7_200_000, 75 + gpu)))
        ]
        loss = ["NaN", "Infinity"] if number == 2 else [2.0, 1.0 + number]
        points += [
            {"key": "loss", "value": value, "step": step, "timestamp": start + step}
            for step, value in enumerate(loss)
        ]
        data.ask(post("runs/log-batch", {"run_id": run_id, "metrics": points}))
        if status != "RUNNING":
            end = {"run_id": run_id, "status": status, "end_time": start + 1000 * (number + 1)}
            data.ask(post("runs/update", end))
    _asked(data, "SELECT 1", fresh=True)
    return experiment


def _asked(data: Data, sql: str, **more: Any) -> Any:
    return data.ask(Call("POST", "/api/3.0/mlflow-serverless/sql", {"sql": sql, **more}))


def _numbers(values: Any) -> list[float]:
    return [math.nan if value in (None, "") else float(value) for value in values]


def _same(left: list[float], right: list[float]) -> bool:
    return str(left) == str(right)


def _look(visitor: Visitor, address: str) -> dict[str, Any]:
    visitor.page.goto(address)
    return _drawn(visitor)


def _drawn(visitor: Visitor) -> dict[str, Any]:
    visitor.page.locator("body[data-state=drawn]").wait_for(timeout=100_000)
    shown: dict[str, Any] = visitor.page.evaluate(SHOWN)
    return shown


def _check(chart: dict[str, Any], shown: dict[str, Any], rows: list[list[Any]]) -> None:
    """The numbers below a chart and its marks are the rows of its SQL."""
    assert shown["alert"] == ""
    texts = [[_text(value) for value in row] for row in rows]
    assert [[_text(value) for value in row] for row in shown["cells"]] == texts, chart["name"]
    if chart["draw"] == "rows":
        assert shown["rows"] == shown["cells"]
        return
    if not rows:
        assert shown["marks"] == []
        return
    names = chart["columns"]
    for series in chart.get("series", [chart.get("value")]):
        wanted = _numbers(row[names.index(series)] for row in rows)
        if chart["draw"] == "stacks":
            wanted = [value for value in wanted if value > 0]
        marks = [
            mark["value"]
            for mark in shown["marks"]
            if mark.get("series", series) == series and "value" in mark
        ]
        if marks or series not in chart.get("around", ()):
            assert _same(_numbers(marks), wanted), (chart["name"], series)


def _text(value: Any) -> str:
    """As JavaScript and Python both may write it."""
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        return "" if value is None else str(value)


def _check_all(data: Data, shown: dict[str, Any]) -> dict[str, list[list[Any]]]:
    found = {}
    for chart in CHARTS:
        name = chart["name"]
        # What the page offers to copy is what it shows, wherever it is run.
        answer = _asked(data, shown[name]["sql"])
        _check({**chart, "columns": answer["columns"]}, shown[name], answer["rows"])
        found[name] = answer["rows"]
    return found


def test_every_chart_shows_what_its_sql_says(browser: Any, data: Data, fleet: str) -> None:
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        shown = _look(visitor, f"{data.url}/dashboards?minutes=0")
        assert len(shown) == 9
        rows = _check_all(data, shown)
        visitor.looks("dashboards", "Reliability by experiment", "Curve of a metric")

        ratios = {name: (runs, ratio) for name, runs, ratio in rows["reliability"]}
        assert ratios[NAME] == (4, 0.5)
        assert ratios["diabetes"] == (len(data.runs), 1.0)
        assert sum(finished for _, finished, *_ in rows["failures"]) == 2 + len(data.runs)
        assert [row[2:] for row in rows["failures"][:2]] == [[0, 0], [1, 1]]
        assert [row[2:] for row in rows["lengths"][:2]] == [[1.5, 1.95], [3.5, 3.95]]
        # Two, two and one run, each with 25, 50, 75 on a GPU and 25, 50, 76 on another.
        assert [row[1] for row in rows["gpu"]] == [pytest.approx(301 / 6)] * 3
        [[_, hours, wasted]] = rows["waste"]
        assert hours == pytest.approx(5 * 2 * 2)
        assert wasted == pytest.approx(2 * 2 * 2 + 3 * 2 * (2 - 301 / 300))
        assert {row[1] for row in rows["diverged"]} == {"fleet-2"}
        assert [row[1] for row in rows["stuck"]] == ["fleet-4"]

        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 844})
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        visitor.looks("dashboards-phone-dark", "Runs at a glance")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.locator("#theme").click()
        assert page.evaluate(ground) != dark
        page.locator("#refresh").click()
        page.locator("#refresh:enabled").wait_for(timeout=100_000)
        assert page.evaluate(SHOWN)["reliability"] == shown["reliability"]
        visitor.looks("dashboards-phone-light", "Runs at a glance")


def test_what_is_chosen_and_its_report(
    browser: Any, data: Data, fleet: str, tmp_path: Path
) -> None:
    """Filters and settings choose; the address says what was chosen, and so does the command whose
    file shows the same without asking anybody."""
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        _look(visitor, f"{data.url}/dashboards?experiment={fleet}&until=2025-10-09&metric=loss")
        page.locator("select[name=user]").select_option("o'0")
        _drawn(visitor)
        page.locator("#best select[name=order]").select_option("highest")
        shown = _drawn(visitor)
        # The second user's runs are out, and those that started on the next day or later.
        assert [cells[1:] for cells in shown["reliability"]["cells"]] == [["1", "1"]]
        assert [(row[1], row[3]) for row in shown["best"]["cells"]] == [("fleet-0", "1")]
        assert [row[1] for row in shown["curve"]["cells"]] == ["2", "1"]
        assert _asked(data, shown["best"]["sql"])["rows"][0][1] == "fleet-0"
        visitor.looks("dashboards-filtered", "fleet-0")
        assert parse_qs(urlsplit(page.url).query) == {
            "experiment": [fleet],
            "until": ["2025-10-09"],
            "metric": ["loss"],
            "user": ["o'0"],
            "order": ["highest"],
        }

    target = tmp_path / "report.html"
    chosen = ("--experiment", fleet, "--until", "2025-10-09", "--metric", "loss")
    given = ("--html", str(target), "--url", data.url, "--user", "o'0", "--order", "highest")
    command = [sys.executable, "-m", "local.admin", "report", *given, *chosen]
    done = run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr
    with visiting(browser, data.url) as visitor:
        asked: list[str] = []
        visitor.page.on("request", lambda request: asked.append(request.url))
        assert _look(visitor, target.as_uri()) == shown
        visitor.looks("dashboards-report", "Runs at a glance")
        assert asked == [target.as_uri()]
