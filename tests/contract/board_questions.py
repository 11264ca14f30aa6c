"""Asks the statements of the dashboards, and compares their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from operate import dashboard_report
from tests.contract.board_world import DAYS, FIRST
from tests.contract.lake import Tables
from tests.engines import ROOT

Rows = list[tuple[Any, ...]]
BOARDS = {
    path.stem: json.loads(path.read_text()) for path in (ROOT / "dashboards/boards").glob("*.json")
}
VALUES = {
    "experiment": "",
    "user": "",
    "since": FIRST.isoformat(),
    "until": (FIRST + timedelta(DAYS)).isoformat(),
    "horizon": "0001-01-01",
    "sessions": "turns",
    "version": "model",
    "metric": "",
    "order": "lowest",
    "run": "",
    "minutes": "60",
}


class Boards:
    """Asks the statements of boards."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def rows(
        self, board: str, chart: str, *columns: str, grain: str = "day", **chosen: str
    ) -> Rows:
        """The named columns of a chart's rows."""
        book = BOARDS[board]
        lines = book["choices"].get(chart) or next(
            entry["sql"] for entry in book["charts"] if entry["name"] == chart
        )
        sql = dashboard_report.statement(book, lines, grain)
        answer = self._tables.ask(sql, None, **dashboard_report.used(sql, {**VALUES, **chosen}))
        at = [answer["columns"].index(name) for name in columns]
        return [tuple(row[index] for index in at) for row in answer["rows"]]


def grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def same(rows: Rows, expected: Iterable[tuple[Any, ...]]) -> None:
    wanted = list(expected)
    assert len(rows) == len(wanted), (rows, wanted)
    for row, other in zip(rows, wanted, strict=True):
        for value, number in zip(row, other, strict=True):
            if isinstance(number, float):
                assert value == pytest.approx(number, rel=1e-9, abs=1e-12), (row, other)
            else:
                assert value == number, (row, other)
