"""What the page of the dashboards asks, is answered and shows in its cards."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

from tests.engines import ROOT

SQL: Final = "/ajax-api/3.0/mlflow-serverless/sql"

SHOWN = """() => {
  const cells = (card, where) => [...card.querySelectorAll(`${where} tbody tr`)].map(
    (row) => [...row.cells].map((cell) => cell.dataset.value).filter((one) => one !== undefined));
  const drawn = (card) => {
    const chart = echarts.getInstanceByDom(card.querySelector(".drawing"));
    return chart ? chart.getOption().series.map(({name, data}) => [name, data]) : [];
  };
  return Object.fromEntries([...document.querySelectorAll("main > section")].map((one) => [one.id, {
    sql: one.querySelector("pre").textContent,
    cells: cells(one, ".numbers"),
    rows: cells(one, ".drawing"),
    series: Object.fromEntries(drawn(one)),
    none: one.querySelector(".none")?.textContent ?? "",
    alert: one.querySelector("[role=alert]")?.textContent ?? "",
  }]));
}"""
"""A function of JavaScript that returns what each card shows, by its id."""


class Answers:
    """Reads along what the page asks, and what the server answers to that."""

    def __init__(self, page: Any) -> None:
        self._replies: list[Any] = []
        page.on("response", self._answered)

    def _answered(self, reply: Any) -> None:
        if reply.url.endswith(SQL) and reply.status == 200:
            self._replies.append(reply)

    def of(self, sql: str) -> dict[str, Any]:
        """Returns the last answer to a question that is this statement when its parameters are
        written as literals: what a card offers to copy is what it asked."""
        return next(
            reply.json()
            for reply in reversed(self._replies)
            if complete(reply.request.post_data_json) == sql
        )


def complete(asked: dict[str, Any]) -> str:
    """The statement of a request, with literals in place of its parameters."""
    literals = {
        name: "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        for name, value in asked.get("parameters", {}).items()
    }
    return re.sub(r":([a-z]+)\b", lambda found: literals.get(found[1], found[0]), asked["sql"])


def ask_nothing(page: Any) -> None:
    """Makes the page of the dashboards run no query: for those that only pass through it."""
    page.route(f"**{SQL}", lambda route: route.abort("aborted"))


def draw_only(page: Any, board: str, cards: Collection[str]) -> None:
    """Makes the page draw these cards of a board, and ask only what they need."""
    book = json.loads((ROOT / f"dashboards/boards/{board}.json").read_text())
    book["charts"] = [chart for chart in book["charts"] if chart["name"] in cards]
    assert len(book["charts"]) == len(cards)
    page.route(f"**/dashboards/boards/{board}.json", lambda route: route.fulfill(json=book))
