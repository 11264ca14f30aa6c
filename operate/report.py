"""``python -m local.admin report --html FILE``: the page of the dashboards with its answers inside,
as one file that asks nobody; what charts there are ``dashboards/charts.json`` says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.http.website import CHARTS, DASHBOARDS
from operate.modules import CannotRun

BEGINNING: Final = "0001-01-01"
END: Final = "9999-12-31"
FIRST_YEAR: Final = "2018"
"""MLflow's: runs that started before it have no clock, and decide no axis."""
LONGEST: Final = (("hour", 3), ("day", 130), ("week", 7 * 130))
"""Up to how many days the points of a chart are so far apart; else months."""
_BUCKET: Final = re.compile(r"\{bucket ([a-z._]+)\}")
_PLACEHOLDER: Final = re.compile(r":([a-z]+)\b")
_ASSET: Final = re.compile(
    r'<link rel="stylesheet" href="[^"]*/(?P<style>[^"/]+)">'
    r'|<script src="[^"]*/(?P<script>[^"/]+)"></script>'
)
_POLICY: Final = re.compile(r'(?<=http-equiv="Content-Security-Policy" content=")[^"]*')
_LINKS: Final = re.compile(r'<link rel="icon"[^>]*>\n?|<a id="readers".*?</a>')
"""What a file has not: its icon, and the link to the readers."""

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Takes a statement and its parameters; answers ``{"columns", "types", "rows"}``."""


class Wish(NamedTuple):
    """What the page would be asked by its filters; empty is all, days are ``YYYY-MM-DD``."""

    experiment: str = ""
    user: str = ""
    since: str = ""
    until: str = ""
    metric: str = ""
    order: str = "lowest"
    run: str = ""
    minutes: int = 60


def write(target: Path, ask: Ask, wish: Wish, server: str | None = None) -> int:
    """Asks for every chart and writes the file.

    Args:
        server: the address that links to runs and experiments begin with.

    Raises:
        CannotRun: a day is none, a statement is refused, the chart library is missing, or the file
            cannot be written.
    """
    content = page({**_answered(ask, wish), "server": (server or "").rstrip("/")})
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"{target} cannot be written: {error.strerror}") from error
    print(f"{target}: {len(content.encode())} bytes")
    return 0


def page(report: dict[str, Any]) -> str:
    """The page with styles, scripts and answers inside; its policy allows these and no others."""
    allowed: dict[str, list[str]] = {"style": [], "script": []}

    def inside(found: re.Match[str]) -> str:
        kind = "style" if found["style"] else "script"
        text = _asset(found["style"] or found["script"])
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
        return f"<{kind}>{text}</{kind}>"

    source = _LINKS.sub("", (DASHBOARDS / "index.html").read_text(encoding="utf-8"))
    # Text of others cannot end the element: JSON may spell the sign in another way.
    answers = json.dumps(report).replace("<", "\\u003c")
    data = f'<script type="application/json" id="report">{answers}</script>\n'
    first = source.index("<script ")
    whole = _ASSET.sub(inside, source[:first]) + data + _ASSET.sub(inside, source[first:])
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; " + "; ".join(
        f"{kind}-src {' '.join(digests)}" for kind, digests in allowed.items()
    )
    return _POLICY.sub(policy, whole, count=1)


def _asset(name: str) -> str:
    for folder in (DASHBOARDS, CHARTS):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise CannotRun(f"{name} of the dashboards is missing: run `make setup`")


def _answered(ask: Ask, wish: Wish) -> dict[str, Any]:
    book = json.loads((DASHBOARDS / "charts.json").read_text(encoding="utf-8"))
    values = {name: str(value) for name, value in wish._asdict().items()}
    values["since"] = _day(wish.since).isoformat() if wish.since else BEGINNING
    values["until"] = (_day(wish.until) + timedelta(1)).isoformat() if wish.until else END
    answers: dict[str, Any] = {}
    grain = "day"

    def asked(name: str, lines: list[str]) -> list[list[Any]]:
        sql = "\n".join(lines).replace("{filter}", "\n".join(book["filter"]))
        sql = _BUCKET.sub(rf"DATE_TRUNC('{grain.upper()}', \1)", sql)
        answers[name] = ask(sql, {one: values[one] for one in _PLACEHOLDER.findall(sql)})
        rows: list[list[Any]] = answers[name]["rows"]
        return rows

    grain = _grain(wish, asked("span", book["choices"]["span"]))
    choices = asked("filters", book["choices"]["filters"])
    values["metric"] = wish.metric or _first(row[1] for row in choices if row[0] == "metric")
    runs = asked("runs", book["choices"]["runs"])
    asked("totals", book["choices"]["totals"])
    values["run"] = wish.run or _first(row[1] for row in runs)
    for chart in book["charts"]:
        asked(chart["name"], chart["sql"])
    return {
        "book": book,
        "answers": answers,
        "chosen": {**values, "since": wish.since, "until": wish.until, "window": "all"},
        "grain": grain,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }


def _grain(wish: Wish, months: list[list[Any]]) -> str:
    """How far apart the points of the charts over time are: by the days that are chosen, else by
    those in which runs started.

    Args:
        months: rows of (month, runs, first start, last start).
    """
    tomorrow = (datetime.now(UTC) + timedelta(1)).strftime("%Y-%m-%d")
    usual = [row for row in months if row[2] >= FIRST_YEAR and row[2][:10] <= tomorrow]
    starts = [(row[2][:10], row[3][:10]) for row in usual or months]
    since = wish.since or min((first for first, _ in starts), default=wish.until or tomorrow)
    until = wish.until or max((last for _, last in starts), default=since)
    days = (_day(until) - _day(since)).days + 1
    return next((name for name, most in LONGEST if days <= most), "month")


def _first(values: Any) -> str:
    return next(iter(values), "")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CannotRun(f"{text} is no day: write it as 2026-01-31") from error
