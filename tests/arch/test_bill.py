"""What the project says about its costs, and what the template makes of them."""

from __future__ import annotations

import re

import pytest

from bench.bill import idle, usage
from bench.bill.__main__ import BOOK, quoted
from bench.bill.usage import TEAMS
from mlcore.prices import aws as prices
from tests.arch import project

STAGES = idle.stages()
MOST_WHILE_NOBODY_WORKS = 4.60


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_stage_costs_next_to_nothing_while_nobody_works(stage: str) -> None:
    assert idle.total(idle.items(STAGES[stage])) < MOST_WHILE_NOBODY_WORKS


def test_the_book_quotes_the_bills_of_today() -> None:
    """`make cost ARGS=--write` renews them."""
    book = BOOK.read_text()
    assert quoted(book) == book


def test_snapshots_are_paid_for_each_version() -> None:
    """The live one and those that `make deploy` keeps."""
    parameters = {**STAGES["prod"], "SnapStart": "true"}
    without = idle.total(idle.items(STAGES["prod"]))
    costs = [idle.total(idle.items(parameters, kept)) - without for kept in range(4)]
    assert costs == [pytest.approx(costs[0] * (1 + kept)) for kept in range(4)]


def test_a_resource_without_a_price_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(idle.FREE, "AWS::SQS::Queue")
    with pytest.raises(idle.NotPriced, match="Queue"):
        idle.items(STAGES["dev"])


def _description(parameter: str) -> str:
    text: str = project.template()["Parameters"][parameter]["Description"]
    return text


def test_descriptions_of_parameters_name_their_prices() -> None:
    memory = int(project.template()["Parameters"]["MemorySize"]["Default"]) / 1024
    version = memory * prices.SNAPSHOT_GB_SECOND * prices.SECONDS
    functions = [
        name
        for name, properties in project.resources("AWS::Serverless::Function").items()
        if "SnapStart" in properties
    ]
    assert functions == ["ExperimentsFunction", "RunsFunction", "AuthorizerFunction"]
    for dollars in (version, 3 * version, 6 * version):
        assert f"{dollars:.2f}" in _description("SnapStart")
    start = memory * prices.SNAPSHOT_GB_RESTORED
    assert f"each start from the snapshot costs ${start:.4f} more" in BOOK.read_text()
    unit = prices.SECONDS * 1000
    assert f"{unit * prices.READ_UNIT:,.0f} dollars" in _description("TableMaxReadUnits")
    assert f"{unit * prices.WRITE_UNIT:,.0f} dollars" in _description("TableMaxWriteUnits")
    assert f"{prices.DASHBOARD:.0f} dollars" in _description("MetricsDashboard")
    cents = usage.access_line() * prices.MILLION / 1e9 * prices.LOG_GB * 100
    assert f"{cents:.0f} cents a million" in _description("AccessLogs")
    route = 8 * prices.METRIC
    paths = {re.sub(r"^/(ajax-)?api", "", path) for _, _, path in project.rpcs()}
    assert f"{route:.2f} dollars" in _description("RouteMetrics")
    assert f"{round(len(paths) * route)} for the {len(paths)}" in _description("RouteMetrics")


def test_a_bill_follows_what_is_done() -> None:
    """Ten times the work is ten times the bill, but for what is paid whether anybody works."""
    one, ten, _ = (usage.bill(team) for team in TEAMS)
    for small, large in zip(one[:-2], ten[:-2], strict=True):
        if small.subject.startswith("System tables"):  # runs share the minutes in which they write
            assert small.dollars < large.dollars <= 10 * small.dollars
        else:
            assert large.dollars == pytest.approx(10 * small.dollars), small.subject
    assert [line.dollars for line in one[-2:]] == [line.dollars for line in ten[-2:]]
    quiet = TEAMS[0]._replace(runs=0, views=0, traces=0, model_calls=0, table_gb=0, files_gb=0)
    assert sum(line.dollars for line in usage.bill(quiet)[:-2]) == 0
    larger = {"MemorySize": "3538", "AccessLogs": "false", "Authentication": "none"}
    changed = {line.subject: line.dollars for line in usage.bill(TEAMS[0], larger)}
    before = {line.subject: line.dollars for line in one}
    assert changed["Lambda: indexer"] > 1.5 * before["Lambda: indexer"]
    assert changed["CloudWatch: logs"] < before["CloudWatch: logs"]
    assert changed["Lambda: authorizer"] == 0


def test_a_bill_names_what_a_team_pays_for() -> None:
    """Each kind of thing that costs by use has a line; the lines that once were missing."""
    lines = {line.subject: line.dollars for line in usage.bill(TEAMS[1])}
    for what in ("lander", "publisher", "CloudFront", "events", "outside the region"):
        [dollars] = [dollars for name, dollars in lines.items() if what in name]
        assert dollars > 0, what
    seldom = {
        line.subject: line.dollars for line in usage.bill(TEAMS[1], {"SystemTablesMinutes": "5"})
    }
    publisher = "System tables: publisher"
    assert lines[publisher] / 5 < seldom[publisher] < lines[publisher] / 3
    by_token = {
        line.subject: line.dollars for line in usage.bill(TEAMS[1], {"Authentication": "oidc"})
    }
    assert by_token["CloudFront"] < lines["CloudFront"], "its function asks for passwords only"


def test_the_book_says_what_a_flood_costs() -> None:
    stage = STAGES["prod"]
    book = BOOK.read_text()
    assert usage.flood_text(stage) in book
    of_a_day = float(stage["ThrottlingRate"]) * 86400
    empty, guesses = (usage.flood(of_a_day, stage, guesses=guessed) for guessed in (False, True))
    assert f"${empty:,.0f} or ${guesses:,.0f} a day" in book
    # What a guess costs besides: two items read, a counter written, and its password hashed.
    assert guesses - empty > of_a_day * (prices.READ_UNIT + prices.WRITE_UNIT)
    assert usage.capacity()["guess"]["api"]["cpu_ms"] > usage.capacity()["login"]["api"]["cpu_ms"]


def test_a_step_lies_between_the_measured_ones() -> None:
    measured = usage.capacity()
    assert usage.with_metrics("step", 10)["index"] == measured["step of 10"]["index"]
    for figure in ("write_units", "cpu_ms"):
        few, many = (measured[f"step of {n}"]["index"][figure] for n in (10, 50))
        assert usage.with_metrics("step", 30)["index"][figure] == pytest.approx((few + many) / 2)
        assert usage.with_metrics("step", 90)["index"][figure] == pytest.approx(2 * many - few)
