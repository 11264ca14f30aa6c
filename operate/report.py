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

from local.http.website import DASHBOARDS
from operate.modules import CannotRun

BEGINNING: Final = "0001-01-01"
END: Final = "9999-12-31"
_PLACEHOLDER: Final = re.compile(r":([a-z]+)\b")
_ASSET: Final = re.compile(
    r'<link rel="stylesheet" href="[^"]*/(?P<style>[^"/]+)">'
    r'|<script src="[^"]*/(?P<script>[^"/]+)"></script>'
)
_POLICY: Final = re.compile(r'(?<=http-equiv="Content-Security-Policy" content=")[^"]*')
_ICON: Final = re.compile(r'<link rel="icon"[^>]*>\n?')

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


def write(target: Path, ask: Ask, wish: Wish) -> int:
    """Asks for every chart and writes the file.

    Raises:
        CannotRun: a day is none, a statement is refused, or the file cannot be written.
    """
    content = page(_answered(ask, wish))
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
        text = (DASHBOARDS / (found["style"] or found["script"])).read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
        return f"<{kind}>{text}</{kind}>"

    source = _ICON.sub("", (DASHBOARDS / "index.html").read_text(encoding="utf-8"))
    # Text of others cannot end the element: JSON may spell the sign in another way.
    answers = json.dumps(report).replace("<", "\\u003c")
    data = f'<script type="application/json" id="report">{answers}</script>\n'
    first = source.index("<script ")
    whole = _ASSET.sub(inside, source[:first]) + data + _ASSET.sub(inside, source[first:])
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; " + "; ".join(
        f"{kind}-src {' '.join(digests)}" for kind, digests in allowed.items()
    )
    return _POLICY.sub(policy, whole, count=1)


def _answered(ask: Ask, wish: Wish) -> dict[str, Any]:
    book = json.loads((DASHBOARDS / "charts.json").read_text(encoding="utf-8"))
    values = {name: str(value) for name, value in wish._asdict().items()}
    values["since"] = _day(wish.since).isoformat() if wish.since else BEGINNING
    values["until"] = (_day(wish.until) + timedelta(1)).isoformat() if wish.until else END
    answers: dict[str, Any] = {}

    def asked(name: str, lines: list[str]) -> list[list[Any]]:
        sql = "\n".join(lines).replace("{filter}", "\n".join(book["filter"]))
        answers[name] = ask(sql, {one: values[one] for one in _PLACEHOLDER.findall(sql)})
        rows: list[list[Any]] = answers[name]["rows"]
        return rows

    choices = asked("filters", book["choices"]["filters"])
    values["metric"] = wish.metric or _first(row[1] for row in choices if row[0] == "metric")
    runs = asked("runs", book["choices"]["runs"])
    values["run"] = wish.run or _first(row[1] for row in runs)
    for chart in book["charts"]:
        asked(chart["name"], chart["sql"])
    return {
        "book": book,
        "answers": answers,
        "chosen": {**values, "since": wish.since, "until": wish.until},
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }


def _first(values: Any) -> str:
    return next(iter(values), "")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CannotRun(f"{text} is no day: write it as 2026-01-31") from error
