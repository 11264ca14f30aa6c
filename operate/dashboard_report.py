"""``python -m local.admin report --html FILE``: writes the dashboard page together with the results
of its queries into one HTML file that loads nothing from elsewhere.
The charts are those of ``dashboards/boards/runs.json``."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.http.ui_files import CHARTS, DASHBOARDS
from operate.module_loading import CannotRun

BEGINNING: Final = "0001-01-01"
END: Final = "9999-12-31"
FIRST_YEAR: Final = "2018"
"""The year of MLflow's first release. Runs with an earlier start had no valid clock and do not set
the range of an axis."""
LONGEST: Final = (("hour", 3), ("day", 130), ("week", 7 * 130))
"""(grain, days): charts of periods up to so many days have a point for each hour, day or week;
charts of longer periods have one for each month."""
_FILTER: Final = re.compile(r"\{filter ([a-z]+)\}")
_BUCKET: Final = re.compile(r"\{bucket ([a-z._]+)\}")
_PLACEHOLDER: Final = re.compile(r":([a-z]+)\b")
_ASSET: Final = re.compile(
    r'<link rel="stylesheet" href="[^"]*/(?P<style>[^"/]+)">'
    r'|<script src="[^"]*/(?P<script>[^"/]+)"></script>'
)
_POLICY: Final = re.compile(r'(?<=http-equiv="Content-Security-Policy" content=")[^"]*')
_LINKS: Final = re.compile(
    r'<link rel="icon"[^>]*>\n?|<a (?:id="[a-z]+" )?href="/dashboards/.*?</a>\n? *'
)
"""Elements of the page that the file leaves out: the icon, and the links to other pages."""

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Runs a statement with parameters; returns ``{"columns", "types", "rows"}``."""


class ReportOptions(NamedTuple):
    """The values of the filters of the dashboard report about runs. An empty experiment, user or
    day (``since``, ``until``) means all; for an empty metric or run the report chooses one. Days
    are ``YYYY-MM-DD``."""

    experiment: str = ""
    user: str = ""
    since: str = ""
    until: str = ""
    metric: str = ""
    order: str = "lowest"
    run: str = ""
    minutes: int = 60


def write(target: Path, ask: Ask, options: ReportOptions, server: str | None = None) -> int:
    """Runs the SQL queries of all the dashboard's charts and writes the report to the file
    ``target``. Returns 0, the exit code.

    Args:
        server: the address with which the report's links to runs and experiments begin.

    Raises:
        CannotRun: a day is malformed, a statement is refused, the chart library is missing, or the
            file cannot be written.
    """
    content = page({**_answered(ask, options), "server": (server or "").rstrip("/")})
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"{target} cannot be written: {error.strerror}") from error
    print(f"{target}: {len(content.encode())} bytes")
    return 0


def page(report: dict[str, Any]) -> str:
    """Returns the dashboard report as an HTML page with styles, scripts and SQL query results
    inline. Its Content-Security-Policy allows nothing else."""
    allowed: dict[str, list[str]] = {"style": [], "script": []}

    def inside(match: re.Match[str]) -> str:
        kind = "style" if match["style"] else "script"
        text = _asset(match["style"] or match["script"])
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
        return f"<{kind}>{text}</{kind}>"

    source = _LINKS.sub("", (DASHBOARDS / "index.html").read_text(encoding="utf-8"))
    # Escape <, so that no value can end the script element.
    answers = json.dumps(report).replace("<", "\\u003c")
    data = f'<script type="application/json" id="report">{answers}</script>\n'
    first = source.index("<script ")
    whole = _ASSET.sub(inside, source[:first]) + data + _ASSET.sub(inside, source[first:])
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; " + "; ".join(
        f"{kind}-src {' '.join(digests)}" for kind, digests in allowed.items()
    )
    return _POLICY.sub(policy, whole, count=1)


def statement(book: dict[str, Any], lines: list[str], grain: str) -> str:
    """Returns the SQL statement of a chart: its ``lines``, in which the names of filters are
    replaced by the filters of the board ``book``, and times are truncated to ``grain`` (such as
    ``day``)."""
    sql = _FILTER.sub(lambda match: "\n".join(book["filter"][match[1]]), "\n".join(lines))
    return _BUCKET.sub(rf"DATE_TRUNC('{grain.upper()}', \1)", sql)


def used(sql: str, values: dict[str, str]) -> dict[str, str]:
    """Returns those of the parameter values ``values`` (by name) that the SQL statement ``sql``
    uses as ``:name``."""
    return {name: values[name] for name in _PLACEHOLDER.findall(sql)}


def _asset(name: str) -> str:
    for folder in (DASHBOARDS, CHARTS):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise CannotRun(f"{name} of the dashboards is missing: run `make setup`")


def _answered(ask: Ask, options: ReportOptions) -> dict[str, Any]:
    book = json.loads((DASHBOARDS / "boards/runs.json").read_text(encoding="utf-8"))
    values = {name: str(value) for name, value in options._asdict().items()}
    values["since"] = _day(options.since).isoformat() if options.since else BEGINNING
    values["until"] = (_day(options.until) + timedelta(1)).isoformat() if options.until else END
    answers: dict[str, Any] = {}
    grain = "day"

    def answered(name: str, lines: list[str]) -> list[list[Any]]:
        sql = statement(book, lines, grain)
        answers[name] = ask(sql, used(sql, values))
        rows: list[list[Any]] = answers[name]["rows"]
        return rows

    grain = _grain(options, answered("span", book["choices"]["span"]))
    choices = answered("filters", book["choices"]["filters"])
    values["metric"] = options.metric or _first(row[1] for row in choices if row[0] == "metric")
    runs = answered("runs", book["choices"]["runs"])
    answered("totals", book["choices"]["totals"])
    values["run"] = options.run or _first(row[1] for row in runs)
    for chart in book["charts"]:
        answered(chart["name"], chart["sql"])
    return {
        "book": book,
        "answers": answers,
        "chosen": {**values, "since": options.since, "until": options.until, "window": "all"},
        "grain": grain,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }


def _grain(options: ReportOptions, months: list[list[Any]]) -> str:
    """Returns the interval between two points of a chart, such as ``day`` or ``month``. It depends
    on the period: the days in the options, otherwise the days in which runs started.

    Args:
        months: rows of (month, runs, first start, last start).
    """
    tomorrow = (datetime.now(UTC) + timedelta(1)).strftime("%Y-%m-%d")
    usual = [row for row in months if row[2] >= FIRST_YEAR and row[2][:10] <= tomorrow]
    starts = [(row[2][:10], row[3][:10]) for row in usual or months]
    since = options.since or min((first for first, _ in starts), default=options.until or tomorrow)
    until = options.until or max((last for _, last in starts), default=since)
    days = (_day(until) - _day(since)).days + 1
    return next((name for name, most in LONGEST if days <= most), "month")


def _first(values: Any) -> str:
    return next(iter(values), "")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CannotRun(f"{text} is not a day: write it as 2026-01-31") from error
