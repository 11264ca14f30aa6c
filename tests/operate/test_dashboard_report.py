"""The file of a report: it carries its answers, and allows no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from operate import dashboard_report
from operate.module_loading import CannotRun

HOSTILE = "</script><script>alert(1)</script><!--"


class Asked:
    """Answers each query with one row, and keeps what was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.months: list[list[Any]] = []

    def __call__(self, sql: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((sql, parameters))
        if "AS month" in sql:
            return {
                "columns": ["month", "runs", "oldest", "newest"],
                "types": [],
                "rows": self.months,
            }
        kind = "metric" if "'metric'" in sql else "run"
        return {"columns": ["kind", "value"], "types": ["string"] * 2, "rows": [[kind, HOSTILE]]}


def test_the_file_runs_its_own_scripts_and_no_text_of_others(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert dashboard_report.write(target, Asked(), dashboard_report.ReportOptions()) == 0
    text = target.read_text()
    assert HOSTILE not in text
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="', outside)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "connect-src" not in policy[0]
    for kind in ("script", "style"):
        inside = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in inside]
        allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
        assert f"{kind}-src {allowed}" in policy[0]
    [data] = re.findall(r'<script type="application/json" id="report">(.*?)</script>', text)
    document = json.loads(data)
    assert document["chosen"]["metric"] == document["chosen"]["run"] == HOSTILE
    assert set(document["answers"]) == {
        "filters",
        "runs",
        "span",
        "totals",
        *(chart["name"] for chart in document["book"]["charts"]),
    }


def test_statements_get_the_values_that_they_name(tmp_path: Path) -> None:
    recorder = Asked()
    dashboard_report.write(
        tmp_path / "x",
        recorder,
        dashboard_report.ReportOptions(user="o'neil", until="2025-12-31", minutes=5),
    )
    for sql, parameters in recorder.calls:
        assert "{" not in sql
        assert set(re.findall(r":([a-z]+)\b", sql)) == set(parameters)
    merged = {name: value for _, given in recorder.calls for name, value in given.items()}
    assert merged["user"] == "o'neil"
    assert (merged["since"], merged["until"]) == (dashboard_report.BEGINNING, "2026-01-01")
    assert (merged["minutes"], merged["order"]) == ("5", "lowest")


def test_what_cannot_be_done_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="is not a day"):
        dashboard_report.write(
            tmp_path / "x", Asked(), dashboard_report.ReportOptions(since="yesterday")
        )
    with pytest.raises(CannotRun, match="cannot be written"):
        dashboard_report.write(tmp_path / "none/x", Asked(), dashboard_report.ReportOptions())


@pytest.mark.parametrize(
    ("since", "until", "starts", "grain"),
    [
        ("2026-01-05", "2026-01-06", [], "HOUR"),
        ("2026-01-05", "2026-03-06", [], "DAY"),
        ("", "", ["2025-01-05T00:00:00.000Z", "2026-03-06T00:00:00.000Z"], "WEEK"),
        ("", "", ["2019-01-05T00:00:00.000Z", "2026-03-06T00:00:00.000Z"], "MONTH"),
        # One run of 1970 and one of the year 9999 decide nothing.
        ("", "", ["1970-01-01T00:00:00.012Z", "2026-03-06T00:00:00.000Z"], "HOUR"),
        ("", "", ["2026-03-06T00:00:00.000Z", "9999-12-31T00:00:00.000Z"], "HOUR"),
        ("", "", ["1970-01-01T00:00:00.012Z"], "HOUR"),
        ("", "", [], "HOUR"),
    ],
)
def test_points_are_as_far_apart_as_the_time_is_long(
    tmp_path: Path, since: str, until: str, starts: list[str], grain: str
) -> None:
    recorder = Asked()
    recorder.months = [[start, 1, start, start] for start in starts]
    target = tmp_path / "x"
    dashboard_report.write(
        target, recorder, dashboard_report.ReportOptions(since=since, until=until), "http://server/"
    )
    cut = {
        match for sql, _ in recorder.calls for match in re.findall(r"DATE_TRUNC\('(\w+)', m", sql)
    }
    assert cut == {grain}
    [data] = re.findall(r'id="report">(.*?)</script>', target.read_text(), re.DOTALL)
    assert json.loads(data)["grain"] == grain.lower()
    assert json.loads(data)["server"] == "http://server"
