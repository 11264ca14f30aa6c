from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from mlcore.entities import alert_conditions
from operate import alert
from operate.module_loading import CannotRun

SQL = "SELECT * FROM ratios ORDER BY experiment_id;  -- by experiment\n"
BOUND = 10_000
"""Rows of an answer."""


class Engine:
    """Answers as the API does, with SQLite in the place of DuckDB."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE TABLE ratios (experiment_id, success_ratio, run_count)")

    def fill(self, *rows: tuple[Any, ...]) -> None:
        self._connection.executemany("INSERT INTO ratios VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        self._connection.close()

    def __call__(self, sql: str) -> dict[str, Any]:
        self.asked.append(sql)
        cursor = self._connection.execute(sql)
        rows = cursor.fetchall()
        return {
            "columns": [column[0] for column in cursor.description],
            "rows": rows[:BOUND],
            "truncated": len(rows) > BOUND,
        }


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("MIN(success_ratio) < 0.9", alert.CONDITION_MET),
        ("min( success_ratio ) < 0.5", 0),
        ("MAX(success_ratio) >= 1", alert.CONDITION_MET),
        ("AVG(success_ratio) = 0.75", alert.CONDITION_MET),
        ("SUM(run_count) != 44", 0),
        ("COUNT(success_ratio) > 1", alert.CONDITION_MET),
        ("FIRST(run_count) > 40", 0),
        ("MAX(run_count) < Infinity", alert.CONDITION_MET),
        ("MAX(run_count) = NaN", 0),
    ],
)
def test_a_condition_decides_the_exit_code(engine: Engine, when: str, code: int) -> None:
    engine.fill(("1", 1.0, 40), ("2", 0.5, 4), ("3", None, 0))
    assert alert.run(engine, SQL, when) == code


def test_the_file_says_the_condition_unless_the_caller_does(engine: Engine) -> None:
    engine.fill(("1", 0.5, 4))
    sql = f"-- when: MIN(success_ratio) < 0.9\n{SQL}"
    assert alert.run(engine, sql, None) == alert.CONDITION_MET
    assert alert.run(engine, sql, "MIN(success_ratio) < 0.1") == 0
    with pytest.raises(CannotRun, match="give --when"):
        alert.run(engine, SQL, None)


def test_no_rows_meet_no_condition(engine: Engine) -> None:
    assert alert.run(engine, SQL, "MIN(run_count) < 1") == 0
    assert alert.run(engine, SQL, "FIRST(run_count) < 1") == 0
    assert alert.run(engine, SQL, "COUNT(run_count) < 1") == alert.CONDITION_MET


def test_rows_that_an_answer_leaves_out_count(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.fill(*((f"{number:05}", 1.0, 1) for number in range(BOUND)), ("99999", 0.1, 1))
    assert alert.run(engine, SQL, "COUNT(experiment_id) > 10000") == alert.CONDITION_MET
    assert alert.run(engine, SQL, "MIN(success_ratio) < 0.9") == alert.CONDITION_MET
    assert "it is 0.1" in capsys.readouterr().out


@pytest.mark.parametrize("when", ["", "x < 1", "MIN(x) <", "MIN(x) < 1 OR 1", "MIN(x) < -"])
def test_what_is_no_condition_is_refused(engine: Engine, when: str) -> None:
    with pytest.raises(CannotRun, match=r"is no condition|give --when"):
        alert.run(engine, SQL, when)
    assert engine.asked == []


@pytest.mark.parametrize("value", [-1.0, 0.0, 5.0, float("inf"), float("nan")])
def test_nan_equals_nan_and_is_greater_than_all_else(value: float) -> None:
    """As in Databricks and DuckDB."""
    met = {
        comparison: alert_conditions.parse(f"MAX(x) {comparison} NaN").is_met(value)
        for comparison in ("<", "<=", ">", ">=", "=", "!=")
    }
    is_nan = value != value  # noqa: PLR0124 -- what NaN is
    assert met == {
        "<": not is_nan,
        "<=": True,
        ">": False,
        ">=": is_nan,
        "=": is_nan,
        "!=": not is_nan,
    }
    assert alert_conditions.parse("MAX(x) > 4").is_met(value) == (is_nan or value > 4)
