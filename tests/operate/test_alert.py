from __future__ import annotations

from typing import Any

import pytest

from operate import alert
from operate.modules import CannotRun

ANSWER: dict[str, Any] = {
    "columns": ["experiment_id", "success_ratio", "run_count"],
    "rows": [["1", 1.0, 40], ["2", 0.5, 4], ["3", None, 0]],
}


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("MIN(success_ratio) < 0.9", alert.MET),
        ("min( success_ratio ) < 0.5", 0),
        ("MAX(success_ratio) >= 1", alert.MET),
        ("AVG(success_ratio) = 0.75", alert.MET),
        ("SUM(run_count) != 44", 0),
        ("COUNT(success_ratio) > 1", alert.MET),
        ("FIRST(run_count) > 40", 0),
    ],
)
def test_a_condition_decides_the_exit_code(when: str, code: int) -> None:
    assert alert.run(lambda: ANSWER, "SELECT 1", when) == code


def test_the_file_says_the_condition_unless_the_caller_does() -> None:
    sql = "-- when: MIN(success_ratio) < 0.9\nSELECT 1"
    assert alert.run(lambda: ANSWER, sql, None) == alert.MET
    assert alert.run(lambda: ANSWER, sql, "MIN(success_ratio) < 0.1") == 0
    with pytest.raises(CannotRun, match="say --when"):
        alert.run(lambda: ANSWER, "SELECT 1", None)


def test_no_rows_meet_no_condition() -> None:
    empty = {"columns": ["x"], "rows": []}
    assert alert.run(lambda: empty, "SELECT 1", "MIN(x) < 1") == 0
    assert alert.run(lambda: empty, "SELECT 1", "COUNT(x) < 1") == alert.MET


@pytest.mark.parametrize("when", ["", "x < 1", "MIN(x) <", "MIN(x) < 1 OR 1", "MIN(x) < -"])
def test_what_is_no_condition_is_refused(when: str) -> None:
    with pytest.raises(CannotRun, match=r"is no condition|say --when"):
        alert.run(lambda: ANSWER, "SELECT 1", when)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(CannotRun, match="no column 'y'"):
        alert.run(lambda: ANSWER, "SELECT 1", "MIN(y) < 1")
