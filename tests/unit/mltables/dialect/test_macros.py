"""The macros that many statements need are created once, in the database that forked processes
have."""

from __future__ import annotations

from typing import Any

import pytest

from mltables import duckdb_connection
from mltables.dialect import macros

CALL = "spark_timestamp('2026-01-05 10:00:00')"


class Recorder:
    """A connection that notes which macros are created on it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.created: list[str] = []

    def execute(self, sql: str) -> Any:
        self.created.append(sql)
        return self.connection.execute(sql)


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has opened no database yet."""
    monkeypatch.setattr(duckdb_connection, "_databases_before_fork", [])
    monkeypatch.setattr(macros, "_created_before_fork", set())


def _created(sql: str) -> list[str]:
    """What a new connection has to create for a statement, which then runs."""
    with duckdb_connection.connect(None) as connection:
        recorder = Recorder(connection)
        macros.create_macros(recorder, sql)  # type: ignore[arg-type]
        connection.execute(f"SELECT {sql}")
    return recorder.created


def test_common_macros_are_there_after_a_fork_and_others_are_created() -> None:
    macros.create_before_fork(duckdb_connection.open_before_fork())
    assert _created(CALL) == []
    assert _created("spark_pmod(7, 3)") != []


def test_without_a_fork_each_connection_creates_what_it_needs() -> None:
    assert _created(CALL) == _created(CALL) != []
