"""Rows that DuckDB reads from columns are those that were given."""

from __future__ import annotations

import random
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb")
arrow_columns = pytest.importorskip("mltables.arrow_columns")
table_columns = pytest.importorskip("mltables.table_columns")

_TEXTS = ("", "plain", "ünïcode 😀", "nul \x00 inside", "x" * 5_000)
_NUMBERS = (0, -1, 2**63 - 1, -(2**63))


def _columns() -> tuple[Any, ...]:
    text, map_of_texts = table_columns.TEXT, table_columns.MAP_OF_TEXTS
    return (
        table_columns.text_column("name"),
        table_columns.text_column("parent", nullable=True),
        table_columns.integer_column("number", nullable=True),
        table_columns.texts_column("attributes"),
        table_columns.structs_column(
            "events",
            {
                "at": ("BIGINT", table_columns.integer_column("at")[2]),
                "name": (table_columns.STRING, text),
                "attributes": (table_columns.TEXTS, map_of_texts),
            },
        ),
    )


def _texts(rng: random.Random) -> dict[str, str]:
    return {
        f"{rng.choice(_TEXTS)}{number}": rng.choice(_TEXTS) for number in range(rng.randrange(4))
    }


def _row(rng: random.Random) -> tuple[Any, ...]:
    events = [
        {
            "at": rng.choice((None, *_NUMBERS)),
            "name": rng.choice(_TEXTS),
            "attributes": _texts(rng),
        }
        for _ in range(rng.choice((0, 0, 1, 3)))
    ]
    return (
        rng.choice(_TEXTS),
        rng.choice((None, *_TEXTS)),
        rng.choice((None, *_NUMBERS)),
        _texts(rng),
        events,
    )


@pytest.mark.parametrize("sizes", [[0], [1], [0, 0], [3, 0, 70], [3_000]])
def test_rows_are_read_as_they_were_given(sizes: list[int]) -> None:
    rng = random.Random(len(sizes))
    columns = _columns()
    parts = [[_row(rng) for _ in range(size)] for size in sizes]
    with duckdb.connect() as connection:
        arrays = [arrow_columns.rows_of(columns, rows) for rows in parts]
        connection.register("loaded", arrow_columns.joined(arrays))
        described = connection.execute("DESCRIBE loaded").fetchall()
        for _ in range(2):
            assert connection.execute("FROM loaded").fetchall() == [
                row for rows in parts for row in rows
            ]
    assert [kind for _, kind, *_ in described] == [
        "VARCHAR",
        "VARCHAR",
        "BIGINT",
        "MAP(VARCHAR, VARCHAR)",
        'STRUCT("at" BIGINT, "name" VARCHAR, attributes MAP(VARCHAR, VARCHAR))[]',
    ]
