"""The boards over usage, agents, quality and costs in a browser: each card shows what its SQL says,
names of users are texts, and what fails or is missing is told in its card."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from tests.browser.conftest import visiting
from tests.browser.drawn_cards import SHOWN, SQL, Answers, draw_only
from tests.browser.visitor import Visitor
from tests.contract.board_world import FIRST, HOSTILE, Made, made
from tests.differential.rest import Call, Side, post
from tests.engines import ROOT
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
EVE = ("eve", "password-of-eve")
BOARDS = {
    name: json.loads((ROOT / f"dashboards/boards/{name}.json").read_text())
    for name in ("usage", "agents", "quality", "costs")
}
TIME = "since=2026-01-05&until=2026-01-08"
"""The days on which the traces start."""
LONG = "<b>\u202e" + "y" * 10_000
"""The name of a tool, and what it says when it fails."""
OTHERS = "(others)"
UNITS: dict[str, set[float]] = {"seconds": {1, 60, 3600, 86_400}, "ratio": {0.01}}
"""By what the numbers of a chart with lines may be divided to be drawn."""


class Fleet(NamedTuple):
    url: str
    side: Side
    traces: list[Made]
    empty: str
    """The id of an experiment without traces."""

    def rows(self, sql: str) -> Json:
        answer = self.side.send(Call("POST", "/api/3.0/mlflow-serverless/sql", {"sql": sql}))
        assert answer.status == 200, answer
        return dict(answer.body)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("boards")
    started = start_product(folder, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])
    with stopped(started) as server:
        side = Side(server.url)
        side.login = ADMIN

        def done(call: Call) -> Any:
            answer = side.send(call)
            assert answer.status == 200, answer
            return answer.body

        user = {"username": EVE[0], "password": EVE[1]}
        done(post("users/create", user))
        names = (HOSTILE[0], HOSTILE[1], "empty")
        *experiments, empty = (
            done(post("experiments/create", {"name": name}))["experiment_id"] for name in names
        )
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        login = b64encode(":".join(ADMIN).encode()).decode()

        def send(path: str, body: Json, headers: Mapping[str, str]) -> int:
            own = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), {**own, **headers})
            reply = connection.getresponse()
            reply.read()
            return reply.status

        traces = made(experiments, 48, seed=3, send=send, tool=LONG)
        done(Call("POST", "/api/3.0/mlflow-serverless/sql", {"sql": "SELECT 1", "fresh": True}))
        yield Fleet(server.url, side, traces, empty)
        connection.close()
        side.close()


def _look(visitor: Visitor, url: str, board: str, query: str = TIME) -> dict[str, Json]:
    visitor.page.goto(f"{url}/dashboards?{query}#{board}")
    return _drawn(visitor, board)


def _drawn(visitor: Visitor, board: str) -> dict[str, Json]:
    drawn = f"body[data-state=drawn][data-board={board}]"
    visitor.page.locator(drawn).wait_for(timeout=200_000)
    shown: dict[str, Json] = visitor.page.evaluate(SHOWN)
    return shown


def _text(value: Any) -> str:
    """As JavaScript and Python both may write it."""
    try:
        return f"{float(value):.12g}"
    except (TypeError, ValueError):
        return "" if value is None else str(value)


def _texts(rows: list[list[Any]]) -> list[list[str]]:
    return [[_text(value) for value in row] for row in rows]


def _check(chart: Json, shown: Json, answer: Json) -> None:
    """What a card shows and draws, and its numbers, are the rows of its SQL."""
    assert shown["alert"] == ""
    rows, at = answer["rows"], answer["columns"].index
    assert _texts(shown["cells"]) == _texts(rows), chart["name"]
    if chart["draw"] == "list":
        wanted = [[row[at(column["name"])] for column in chart["columns"]] for row in rows]
        assert _texts(shown["rows"]) == _texts(wanted), chart["name"]
        return
    if "by" in chart:
        series: dict[str, dict[str, float]] = {}
        for row in rows:
            series.setdefault(row[at(chart["by"])], {})[row[at("time")]] = row[at(chart["value"])]
    else:
        names = (*chart["series"], *chart.get("over", ()))
        series = {name: {row[at("time")]: row[at(name)] for row in rows} for name in names}
    if shown["none"]:
        assert shown["none"] in (chart["empty"], chart.get("zero"))
        assert not any(value for values in series.values() for value in values.values())
        return
    assert set(shown["series"]) == set(series)
    assert (OTHERS not in series) or list(shown["series"])[-1] == OTHERS
    if chart["draw"] == "stacks":
        # The library stacks what has the same place in the data.
        bars = [name for name in series if name not in chart.get("over", ())]
        assert len({tuple(x for x, _ in shown["series"][name]) for name in bars}) == 1
    for name, values in series.items():
        points = shown["series"][name]
        xs = [x for x, _ in points]
        assert xs == sorted(xs)
        # A stack has a value for each place, so it may have zeros that are no rows.
        drawn = [y for _, y in points if y]
        kept = [value for _, value in sorted(values.items()) if value]
        assert any(
            drawn == pytest.approx([value / unit for value in kept])
            for unit in UNITS.get(chart["unit"], {1})
            if chart["draw"] == "lines" or unit == 1
        ), (chart["name"], name)


@pytest.mark.parametrize("board", list(BOARDS))
def test_each_card_shows_what_its_sql_says(browser: Any, fleet: Fleet, board: str) -> None:
    with visiting(browser, fleet.url, ADMIN) as visitor:
        page = visitor.page
        answers = Answers(page)
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.on("dialog", lambda dialog: visitor.problems.append(dialog.message))
        query = "window=24h" if board == "costs" else TIME
        shown = _look(visitor, fleet.url, board, query)
        charts = BOARDS[board]["charts"]
        assert list(shown) == [chart["name"] for chart in charts]
        for chart in charts:
            card = shown[chart["name"]]
            answer = answers.of(card["sql"])
            assert answer["rows"], chart["name"]
            _check(chart, card, answer)
        if board != "costs":  # there the page's own questions are rows
            # What a card offers to copy is what it shows, wherever it is run.
            _check(charts[-1], card, fleet.rows(card["sql"]))
        if board == "agents":
            _check_links(page, fleet, shown)
        _check_tiles(visitor, board)
        for chart in charts:
            _check_drawing(visitor, chart)
        assert page.locator("main img, main script, main b[onclick], dialog img").count() == 0
        assert "\u202e" not in page.locator("main").inner_text()
        assert page.title() == "MLflow dashboards"
        assert {urlsplit(url).netloc for url in requested} == {urlsplit(fleet.url).netloc}
        visitor.looks(f"dashboards-{board}", BOARDS[board]["title"])


def _check_links(page: Any, fleet: Fleet, shown: dict[str, Json]) -> None:
    """They lead to pages of sessions and of traces, which test_traces.py opens."""
    session = page.locator("#sessions tbody a").first
    (of_session, *_) = shown["sessions"]["cells"]
    link = f"/#/experiments/{of_session[-2]}/chat-sessions/{session.inner_text()}"
    assert session.get_attribute("href") == link
    slowest = max(fleet.traces, key=lambda made: made.latency_ms)
    trace = page.locator("#slow_traces tbody a").first
    address = f"/#/experiments/{slowest.experiment}/traces/tr-{slowest.trace_id}"
    assert trace.get_attribute("href") == address


def _check_tiles(visitor: Visitor, board: str) -> None:
    tiles = visitor.page.locator("#totals dt").all_inner_texts()
    assert tiles == [tile["title"] for tile in BOARDS[board]["choices"]["tiles"]]
    assert visitor.page.locator("#totals [role=alert]").count() == 0


def _check_drawing(visitor: Visitor, chart: Json) -> None:
    """Axes have their unit, several series a legend, and a point tells its values."""
    card = visitor.page.locator(f"#{chart['name']}")
    if chart["draw"] == "list" or card.locator(".none").count():
        return
    labels = card.locator(".drawing svg text").all_text_contents()
    unit = {"usd": "$", "seconds": " s", "ratio": " %"}.get(chart["unit"], chart.get("axis", ""))
    assert any(unit in label for label in labels), (chart["name"], labels)
    places = visitor.page.evaluate(
        """(name) => {
          const chart = echarts.getInstanceByDom(document.querySelector(`#${name} .drawing`));
          const x = chart.getOption().series[0].data.find(([, y]) => y !== null)[0];
          return [chart.convertToPixel({xAxisIndex: 0}, x), chart.getHeight() / 2];
        }""",
        chart["name"],
    )
    card.locator(".drawing").hover(position={"x": places[0], "y": places[1]})
    tip = card.locator(".tip")
    tip.wait_for()
    assert tip.locator("strong").inner_text()
    assert tip.locator("p b").count() > 0


def test_days_are_those_of_the_chosen_zone(browser: Any, fleet: Fleet) -> None:
    """They are counted here past SQL; the zone is in the address, and a link shows the same."""
    name = "Australia/Adelaide"  # ten and a half hours ahead of UTC in summer
    with visiting(browser, fleet.url, ADMIN, name) as visitor:
        page = visitor.page
        draw_only(page, "agents", ("states", "failed_traces"))
        utc = _look(visitor, fleet.url, "agents")["states"]
        assert _days(utc) == _counted(fleet.traces, ZoneInfo("UTC"), "%Y-%m-%dT00:00:00.000Z")
        assert page.locator("#zone option").all_inner_texts() == ["UTC", f"{name} (here)"]
        page.locator("#zone").select_option(name)
        there = _drawn(visitor, "agents")["states"]
        assert parse_qs(urlsplit(page.url).query)["zone"] == [name]
        assert urlsplit(page.url).fragment == "agents"
        assert f"2026-01-05 to 2026-01-08 ({name})" in page.locator("#told").inner_text()
        expected = _counted(fleet.traces, ZoneInfo(name), "%Y-%m-%d 00:00")
        assert _days(there) == expected != _days(utc)
        row = page.locator("#failed_traces tbody tr").first.inner_text()
        latest = max(
            trace.started
            for trace in _within(fleet.traces, ZoneInfo(name))
            if trace.state == "ERROR"
        )
        assert f"{latest.astimezone(ZoneInfo(name)):%Y-%m-%d %H:%M}" in row
        visitor.looks("dashboards-zone", "Traces by state")
    with visiting(browser, fleet.url, ADMIN, "America/New_York") as visitor:
        draw_only(visitor.page, "agents", ("states",))
        draw_only(visitor.page, "quality", ("agreement",))
        shared = _look(visitor, fleet.url, "agents", f"{TIME}&zone={name}")["states"]
        assert _days(shared) == expected
        _look(visitor, fleet.url, "agents", f"{TIME}&zone=Mars/Olympus")
        visitor.page.locator("#boards a[href='#quality']").click()
        _drawn(visitor, "quality")
        assert visitor.page.locator("#zone").input_value() == "UTC"
        visitor.looks("dashboards-zone-unknown", "Judges and people")
        # Each time that a clock shows is that of an instant; one that it leaves out is later.
        wrong = visitor.page.evaluate(
            """(zones) => zones.flatMap((zone) => {
              const all = Array.from({length: 17520}, (_, n) => Date.UTC(2026, 0, 1) + n * 1800000);
              const clocks = all.map((at) => Zone.wall(at, zone));
              return clocks.filter((clock) => Zone.wall(Zone.instant(clock, zone), zone) !== clock);
            })""",
            ["UTC", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe"],
        )
        assert wrong == []
        left_out = "Zone.instant(Date.UTC(2026, 2, 8, 2, 30), 'America/New_York')"
        assert (
            visitor.page.evaluate(left_out)
            == datetime.fromisoformat("2026-03-08T03:30-04:00").timestamp() * 1000
        )


def _days(card: Json) -> dict[str, int]:
    return {day: sum(map(int, counts)) for day, *counts in card["cells"]}


def _within(traces: list[Made], zone: ZoneInfo) -> list[Made]:
    """Those of the four days on a clock of the zone."""
    begin = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=zone)
    return [trace for trace in traces if begin <= trace.started < begin + timedelta(4)]


def _counted(traces: list[Made], zone: ZoneInfo, form: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for trace in sorted(_within(traces, zone), key=lambda trace: trace.started):
        day = trace.started.astimezone(zone).strftime(form)
        counts[day] = counts.get(day, 0) + 1
    return counts


def test_empty_cards_say_why(browser: Any, fleet: Fleet) -> None:
    """For an experiment without rows each card says what it would show."""
    with visiting(browser, fleet.url, ADMIN) as visitor:
        for board, book in BOARDS.items():
            query = f"window=7d&experiment={fleet.empty}&user=nobody"
            shown = _look(visitor, fleet.url, board, query)
            for chart in book["charts"]:
                card = shown[chart["name"]]
                explanation = visitor.page.locator(f"#{chart['name']} .none").inner_text()
                assert explanation == chart["empty"], chart["name"]
                assert (card["cells"], card["alert"], card["series"]) == ([], "", {})
        visitor.looks("dashboards-empty", "AuditReads=true")


def test_a_card_that_fails_stops_no_other(browser: Any, fleet: Fleet) -> None:
    with visiting(browser, fleet.url, ADMIN) as visitor:
        page = visitor.page
        visitor.expected.add(("POST", SQL, 400))

        def answer(route: Any) -> None:
            sql = json.loads(route.request.post_data)["sql"]
            if "AS last_message" in sql or "COUNT(DISTINCT t.session_id)" in sql:
                body = {"error_code": "INVALID_PARAMETER_VALUE", "message": "no table spans"}
                route.fulfill(status=400, json=body)
            else:
                route.continue_()

        page.route(f"**{SQL}", answer)
        names = ("error_rate", "failing_tools", "slow_tools")
        draw_only(page, "agents", names)
        answers = Answers(page)
        shown = _look(visitor, fleet.url, "agents")
        assert shown["failing_tools"]["alert"] == "no table spans"
        assert page.locator("#totals [role=alert]").inner_text() == "no table spans"
        for chart in BOARDS["agents"]["charts"]:
            if chart["name"] in (names[0], names[2]):
                card = shown[chart["name"]]
                _check(chart, card, answers.of(card["sql"]))
        visitor.looks("dashboards-one-fails", "no table spans")


def test_who_may_not_read_sees_no_row(browser: Any, fleet: Fleet) -> None:
    with visiting(browser, fleet.url, EVE) as visitor:
        page = visitor.page
        visitor.expected.add(("POST", SQL, 403))
        for board in BOARDS:
            page.goto(f"{fleet.url}/dashboards?{TIME}#{board}")
            page.locator(f"body[data-state=failed][data-board={board}]").wait_for(timeout=100_000)
            visitor.looks("dashboards-forbidden", "You may not read the system tables.")
            assert page.locator("main td").count() == 0
