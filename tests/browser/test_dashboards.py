"""The dashboards in a browser: each chart shows what its SQL says, and nothing goes wrong."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import Data, visiting
from tests.browser.drawn_cards import SHOWN, Answers, draw_only
from tests.browser.visitor import Visitor
from tests.differential.rest import Call, post
from tests.engines import ROOT
from tests.servers import environment

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
CHARTS = json.loads((ROOT / "dashboards/boards/runs.json").read_text())["charts"]
DAY = 86_400_000
START = 1_760_000_000_000
NAME = 'fleet\'s "own" <b>'
UTILISATION = "system/gpu_{}_utilization_percentage"
UNITS = {"count": {1}, "percent": {1}, "value": {1}, "seconds": {1, 60, 3600, 86_400}}
"""By what the numbers of a chart may be divided to be drawn."""


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


def _look(visitor: Visitor, address: str) -> dict[str, Any]:
    visitor.page.goto(address)
    return _drawn(visitor)


def _drawn(visitor: Visitor) -> dict[str, Any]:
    visitor.page.locator("body[data-state=drawn]").wait_for(timeout=100_000)
    shown: dict[str, Any] = visitor.page.evaluate(SHOWN)
    return shown


def _check(chart: dict[str, Any], shown: dict[str, Any], answer: dict[str, Any]) -> None:
    """What a card shows and draws, and its numbers, are the rows of its SQL."""
    assert shown["alert"] == ""
    rows, at = answer["rows"], answer["columns"].index
    texts = [[_text(value) for value in row] for row in rows]
    assert [[_text(value) for value in row] for row in shown["cells"]] == texts, chart["name"]
    if chart["draw"] == "list":
        wanted = [[row[at(column["name"])] for column in chart["columns"]] for row in texts]
        assert [[_text(value) for value in row] for row in shown["rows"]] == wanted
        assert not shown["series"]
        return
    if not rows:
        assert not shown["series"]
        return
    assert set(chart["series"]) - set(shown["series"]) <= set(chart.get("around", ()))
    for name, points in shown["series"].items():
        values = _numbers(row[at(name)] for row in rows)
        xs = [x for x, _ in points]
        assert xs == sorted(xs)
        drawn = _numbers(value for _, value in points)
        assert any(
            drawn == pytest.approx([value / unit for value in values], nan_ok=True)
            for unit in UNITS[chart["unit"]]
        ), (chart["name"], name)


def _text(value: Any) -> str:
    """As JavaScript and Python both may write it. The engine adds numbers side by side, in another
    order each time, so the last of their digits may differ."""
    try:
        return f"{float(value):.12g}"
    except (TypeError, ValueError):
        return "" if value is None else str(value)


def _check_all(
    data: Data, shown: dict[str, Any], answers: Answers, copied: str
) -> dict[str, list[list[Any]]]:
    results = {}
    for chart in CHARTS:
        name = chart["name"]
        answer = answers.of(shown[name]["sql"])
        if name == copied:
            # What the page offers to copy is what it shows, wherever it is run.
            _check(chart, shown[name], _asked(data, shown[name]["sql"]))
        _check(chart, shown[name], answer)
        results[name] = answer["rows"]
    return results


def test_every_chart_shows_what_its_sql_says(browser: Any, data: Data, fleet: str) -> None:
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        answers = Answers(page)
        shown = _look(visitor, f"{data.url}/dashboards?minutes=0&window=all")
        assert len(shown) == 9
        rows = _check_all(data, shown, answers, "curve")
        visitor.looks("dashboards", "Failure rate by experiment", "Curve of a metric")
        # Nothing failed in the example's experiment, so it is not among those with failures.
        [[name, rate, failed, ended, at_least, at_most, *_]] = rows["reliability"]
        assert (name, rate, failed, ended) == (NAME, 0.5, 2, 4)
        assert (at_least, at_most) == (
            pytest.approx(0.15, abs=0.005),
            pytest.approx(0.85, abs=0.005),
        )
        assert sum(finished for _, finished, *_ in rows["failures"]) == 2 + len(data.runs)
        assert {row[1] for row in rows["diverged"]} == {"fleet-2"}
        assert [row[1] for row in rows["stuck"]] == ["fleet-4"]

        shown = _look(visitor, f"{data.url}/dashboards?minutes=0&since=2025-10-01&until=2025-10-31")
        rows = _check_all(data, shown, answers, "waste")
        assert [row[2:] for row in rows["failures"]] == [[0, 0], [1, 1]]
        assert [row[1:3] for row in rows["lengths"]] == [[1.5, 1.95], [3.5, 3.95]]
        # Two, two and one run, each with 25, 50, 75 on a GPU and 25, 50, 76 on another.
        assert [row[1] for row in rows["gpu"]] == [pytest.approx(301 / 6)] * 3
        [[_, wasted, hours, *_]] = rows["waste"]
        assert hours == pytest.approx(5 * 2 * 2)
        assert wasted == pytest.approx(2 * 2 * 2 + 3 * 2 * (2 - 301 / 300))

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
        assert shown["reliability"]["cells"] == []
        assert [sum(y for _, y in points) for points in shown["failures"]["series"].values()] == [
            1,
            0,
            0,
        ]
        assert [tuple(row[:2]) for row in shown["best"]["cells"]] == [("fleet-0", "1")]
        assert [row[1] for row in shown["curve"]["cells"]] == ["2", "1"]
        assert _asked(data, shown["best"]["sql"])["rows"][0][0] == "fleet-0"
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
        addresses: list[str] = []
        visitor.page.on("request", lambda request: addresses.append(request.url))
        assert _look(visitor, target.as_uri()) == shown
        visitor.looks("dashboards-report", "Runs at a glance")
        assert addresses == [target.as_uri()]


SPAN = """() => {
  const option = echarts.getInstanceByDom(document.querySelector("#failures .drawing")).getOption();
  const drawn = option.series.flatMap((one) => one.data.map(([x]) => x));
  return [option.xAxis[0].min, option.xAxis[0].max, ...drawn];
}"""
YEAR = 366 * DAY
LABELS = """(card) => [...document.querySelectorAll(`#${card} .drawing svg text`)].map(
  (one) => one.textContent)"""


def _check_labels(page: Any) -> None:
    """No label comes twice, and those of lengths are round numbers of one unit."""
    for card, legend in (
        ("failures", ["finished", "failed", "killed"]),
        ("lengths", ["median", "p95"]),
    ):
        labels = [text for text in page.evaluate(LABELS, card) if text not in legend]
        assert len(labels) > 4
        assert len(labels) == len(set(labels)), labels
    lengths = [text for text in labels if re.fullmatch(r"[\d.]+ (s|min|h|d)", text)]
    assert len({text.split(" ")[1] for text in lengths}) == 1
    assert all(len(text.split(" ")[0]) <= 3 for text in lengths), lengths


def test_presets_and_a_run_of_1970(browser: Any, data: Data, fleet: str) -> None:
    """The axes show the chosen time; a run whose clock was wrong is told, and squeezes nothing."""
    lost = data.ask(post("experiments/create", {"name": "no clock"}))["experiment_id"]
    for start in (12_345, 4_102_444_800_000):
        made = data.ask(post("runs/create", {"experiment_id": lost, "start_time": start}))
        end = {"status": "FAILED", "end_time": start + 1000}
        data.ask(post("runs/update", {"run_id": made["run"]["info"]["run_id"], **end}))
    _asked(data, "SELECT 1", fresh=True)
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        answers = Answers(page)
        draw_only(page, "runs", ("failures", "lengths", "reliability"))
        _look(visitor, f"{data.url}/dashboards?experiment=")
        notice = page.locator("#told").inner_text()
        assert "far from all others (1970-01-01, 2100-01-01)" in notice
        for name, days in (("7d", 7), ("30d", 30), ("90d", 90)):
            page.locator(f"#presets button[value='{name}']").click()
            shown = _drawn(visitor)
            _check(CHARTS[0], shown["failures"], answers.of(shown["failures"]["sql"]))
            begin, end, *drawn = page.evaluate(SPAN)
            assert end - begin == days * DAY
            assert drawn
            assert parse_qs(urlsplit(page.url).query) == {"window": [name]}
            pressed = page.locator("#presets [aria-pressed=true]")
            assert pressed.evaluate_all("all => all.map((one) => one.value)") == [name]
            _check_labels(page)
        page.locator("#presets button[value='all']").click()
        shown = _drawn(visitor)
        begin, end, *drawn = page.evaluate(SPAN)
        assert end - begin < 3 * YEAR
        _check_labels(page)
        assert all(begin <= x <= end for x in drawn)
        # They are in the numbers, and in the lists.
        starts = [row[0] for row in shown["failures"]["cells"]]
        assert (starts[0] < "1971", starts[-1] > "2099") == (True, True)
        assert "no clock" in {row[0] for row in shown["reliability"]["cells"]}
        assert "Not drawn: 2 rows" in page.locator("#failures .note").inner_text()
        visitor.looks("dashboards-1970", "2 runs start far from all others")

        # Where there is nothing else it is drawn.
        _look(visitor, f"{data.url}/dashboards?window=all&experiment={lost}")
        assert page.evaluate(SPAN)[0] < YEAR


def test_links_lead_to_the_run_and_the_experiment(browser: Any, data: Data, fleet: str) -> None:
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        draw_only(page, "runs", ("best", "curve"))
        where = f"{data.url}/dashboards?experiment={fleet}&metric=loss&until=2025-10-31"
        shown = _look(visitor, where)
        of_run, of_experiment = (
            page.locator("#best").get_by_role("link", name=name, exact=True).first
            for name in ("fleet-0", NAME)
        )
        chosen = page.get_by_role("link", name="Open in MLflow").get_attribute("href")
        rows = _asked(data, shown["best"]["sql"])
        at = rows["columns"].index
        [run_id] = {row[at("run_id")] for row in rows["rows"] if row[0] == "fleet-0"}
        assert of_run.get_attribute("href") == f"/#/experiments/{fleet}/runs/{run_id}"
        of_experiment.click()
        visitor.looks("dashboards-link-experiment", NAME)
        assert f"/#/experiments/{fleet}" in page.url
        visitor.go(chosen.removeprefix("/#"))
        visitor.looks("dashboards-link-curve", "fleet-4")


HOSTILE = (
    '=HYPERLINK("http://192.0.2.1",A1)',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    'a "quoted", name\nin two lines',
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "{b}{c|rich}",
    "javascript:document.title='taken'",
)


def test_names_of_users_are_texts(browser: Any, data: Data, fleet: str, tmp_path: Path) -> None:
    """Of experiments, runs, users and metrics, on the page and in a spreadsheet."""
    name = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"
    hostile = data.ask(post("experiments/create", {"name": name}))["experiment_id"]
    for number, run_name in enumerate(HOSTILE):
        fields = {"experiment_id": hostile, "start_time": START + number, "user_id": run_name}
        made = data.ask(post("runs/create", {**fields, "run_name": run_name}))
        run_id = made["run"]["info"]["run_id"]
        points = [
            {"key": "a/b: c", "value": -number, "step": step, "timestamp": 1} for step in (0, 1)
        ]
        points.append({"key": "bad", "value": "NaN", "step": 0, "timestamp": 1})
        tags = [{"key": "mlflow.note.content", "value": "<script>alert(1)</script>"}]
        params = [{"key": "p", "value": "<img src=x onerror=alert(1)>"}]
        batch = {"run_id": run_id, "metrics": points, "tags": tags, "params": params}
        data.ask(post("runs/log-batch", batch))
        data.ask(
            post("runs/update", {"run_id": run_id, "status": "FAILED", "end_time": START + 9999})
        )
    _asked(data, "SELECT 1", fresh=True)
    with visiting(browser, data.url) as visitor:
        page = visitor.page
        page.on("dialog", lambda dialog: visitor.problems.append(dialog.message))
        where = f"window=all&experiment={hostile}&metric=a/b: c"
        shown = _look(visitor, f"{data.url}/dashboards?{where}")
        names = [row[0] for row in shown["best"]["cells"]]
        assert sorted(names) == sorted(HOSTILE)
        for card in ("failures", "curve"):  # with what is told of a point
            page.locator(f"#{card} .drawing").hover()
            page.locator(f"#{card} .tip").wait_for()
        for number in range(len(HOSTILE)):
            page.locator("select[name=user]").select_option(index=number)
        page.locator("select[name=user]").select_option("")
        _drawn(visitor)
        page.locator("#best button", has_text="Numbers").click()
        visitor.looks("dashboards-hostile", "Failure rate by experiment")
        page.locator("#best dialog button", has_text="Close").click()
        assert page.locator("main img, main script, dialog img, dialog script").count() == 0
        assert page.title() == "MLflow dashboards"
        for link in page.locator("main a").all():
            assert (link.get_attribute("href") or "").startswith(f"/#/experiments/{hostile}")

        answer = _asked(data, shown["best"]["sql"])
        header, *rows = _downloaded(page, "best", tmp_path)
        assert header == answer["columns"]
        assert len(rows) == len(answer["rows"]) == len(HOSTILE)
        for row, wanted in zip(rows, answer["rows"], strict=True):
            dangerous = wanted[0][0] in "=+-@\t"
            assert row[0] == f"'{wanted[0]}" if dangerous else row[0] == wanted[0]
            assert [_text(value) for value in row[1:]] == [_text(value) for value in wanted[1:]]
        assert min(float(row[1]) for row in rows) == 1 - len(HOSTILE)  # a number is no formula
        for chart in CHARTS:
            _, *rows = _downloaded(page, chart["name"], tmp_path)
            assert len(rows) == len(shown[chart["name"]]["cells"])


def _downloaded(page: Any, card: str, folder: Path) -> list[list[str]]:
    with page.expect_download() as download:
        page.locator(f"#{card} button", has_text="CSV").click()
    assert download.value.suggested_filename == f"mlflow-{card}.csv"
    target = folder / f"{card}.csv"
    download.value.save_as(target)
    with target.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
