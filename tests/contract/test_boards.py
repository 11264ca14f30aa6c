"""The statements of the dashboards: each says what was made through the API, computed past SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from mltables.statement_check import translate
from operate import dashboard_report
from sql import execution
from tests.contract.board_answers import check_agents, check_choices, check_quality, check_usage
from tests.contract.board_questions import BOARDS, VALUES, Boards, grouped, same
from tests.contract.board_world import FIRST, made
from tests.contract.conftest import Store
from tests.contract.costed_requests import NOON, dollars, land, request
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

pytestmark = pytest.mark.timeout(600)

Json = dict[str, Any]


def test_boards_say_what_was_made(store: Store, tables: Tables) -> None:
    """One test, because the traces take longer than the questions."""
    experiments = [store.api.new_experiment(f"experiment {number}") for number in range(3)]
    traces = made(experiments, 90, seed=7)
    tables.follow()
    boards = Boards(tables)
    for check in (check_usage, check_agents, check_quality, check_choices):
        check(boards, traces)


def test_costs(tables: Tables) -> None:
    requests = [request(number) for number in range(60)]
    requests[3]["audit"]["user"] = "<img src=x onerror=alert(1)>"
    land(requests)
    tables.follow()
    boards = Boards(tables)
    time = datetime.fromtimestamp(NOON / 1000, FIRST.tzinfo)
    chosen = {"since": "2026-01-01", "until": "2026-01-02"}
    assert time.isoformat().startswith("2026-01-01")
    keys: dict[str, Callable[[Json], str]] = {
        "workspace": lambda line: line["audit"]["workspace"],
        "user": lambda line: line["audit"]["user"],
        "experiment": lambda line: line["audit"]["entity"]["experiment_id"],
        "route": lambda line: f"POST {line['rpc']}",
    }
    for column, key in keys.items():
        groups = grouped(requests, key)
        same(
            boards.rows("costs", f"by_{column}", column, "usd", "requests", **chosen),
            sorted(
                ((name, sum(map(dollars, lines)), len(lines)) for name, lines in groups.items()),
                key=lambda row: -row[1],
            ),
        )
    total = sum(map(dollars, requests))
    ((*parts, count),) = boards.rows(
        *("costs", "service_cost", "dynamodb", "lambda", "api_gateway", "requests"), **chosen
    )
    assert count == len(requests)
    assert sum(parts) == pytest.approx(total)
    rows = boards.rows("costs", "team_cost", "workspace", "usd", **chosen)
    assert sum(usd for _, usd in rows) == pytest.approx(total)


EVERY = [
    (board, name)
    for board, book in BOARDS.items()
    for name in (
        *(choice for choice in book["choices"] if choice != "tiles"),
        *(chart["name"] for chart in book["charts"]),
    )
]


def test_who_may_not_read_sees_nothing(store: Store, tables: Tables) -> None:
    """With the rights of other workspaces each statement answers no rows, or zeros."""
    made([store.api.new_experiment("agents")], 6, seed=1)
    land([request(number) for number in range(3)])
    tables.follow()
    for board, name in EVERY:
        book = BOARDS[board]
        lines = book["choices"].get(name) or next(
            entry["sql"] for entry in book["charts"] if entry["name"] == name
        )
        sql = dashboard_report.statement(book, lines, "day")
        values = dashboard_report.used(sql, VALUES)
        query = {"sql": sql, "parameters": values, "workspaces": ["team"], "audited": ["team"]}
        rows = execution.run_query(query)["rows"]
        if name == "totals":
            assert not any(value for row in rows for value in row)
        else:
            assert rows == [], (board, name)


def test_each_statement_bounds_the_time_and_reads_no_map_of_spans() -> None:
    """So a query skips the files of other times, and reads of spans the columns of attributes."""
    for board, book in BOARDS.items():
        if board == "runs":
            continue
        for name in (*(choice for choice in book["choices"] if choice != "tiles"), *book["charts"]):
            lines = name["sql"] if isinstance(name, dict) else book["choices"][name]
            translated = translate(dashboard_report.statement(book, lines, "day"))
            assert "attributes" not in translated.reads.get("spans", frozenset()), name
            for table, bounds in translated.bounds.items():
                if table != "experiments_latest":
                    columns = [{bound.column for bound in each} for each in bounds]
                    assert all(each & {"request_time", "insert_time"} for each in columns), (
                        board,
                        name,
                        table,
                    )
