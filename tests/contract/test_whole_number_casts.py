"""Casts to whole numbers: what Spark's rules say of a text, however the engine would read it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import duckdb
import pytest

from mltables import statement_check
from mltables.dialect.macros import casts
from mltables.duckdb_connection import connect

TEXTS = (
    "0", "7", "-7", "+7", " 7", "7 ", "-0", "00", "007", "1.0", "1.5", "1e3", "0x1F", "0b1",
    "1_000", "", " ", "-", "+", "--1", "true", "nan", "inf", "٣", "7\n", "\t7", "1,000", "null",
    "2147483647", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
)  # fmt: skip
BITS = {"inner_int": 31, "inner_bigint": 63}


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(None) as connection:
        connection.execute(casts.MACROS)
        yield connection


def _random_text(rng: random.Random) -> str:
    size = rng.choice((1, 3, 9, 10, 11, 18, 19, 20))
    return rng.choice(("", "", "-", "+", " ")) + "".join(
        rng.choice("0123456789" if rng.random() < 0.97 else "._ex ") for _ in range(size)
    )


@pytest.mark.parametrize("macro", BITS)
def test_a_text_is_a_number_or_an_error(engine: duckdb.DuckDBPyConnection, macro: str) -> None:
    rng = random.Random(1)
    for text in (*TEXTS, *(_random_text(rng) for _ in range(300))):
        number = int(text) if re.fullmatch(r" *[+-]?[0-9]+ *", text) else None
        if number is not None and not -(2 ** BITS[macro]) <= number < 2 ** BITS[macro]:
            number = None
        asked = f"SELECT {macro}(x) FROM (SELECT $text AS x UNION ALL SELECT NULL)"
        if number is None:
            with pytest.raises(duckdb.Error, match="CAST_INVALID_INPUT"):
                engine.execute(asked, {"text": text}).fetchall()
        else:
            rows = engine.execute(asked, {"text": text}).fetchall()
            assert sorted(rows, key=repr) == sorted([(number,), (None,)], key=repr), text


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("5.9::DOUBLE", 5),
        ("-5.9::DOUBLE", -5),
        ("1e18::DOUBLE", 10**18),
        ("5.9::DECIMAL(9, 1)", 5),
        ("true", 1),
        ("12::HUGEINT", 12),
        ("TIMESTAMPTZ '1970-01-01 00:00:09.5+00'", 9),
        ("NULL::VARCHAR", None),
    ],
)
def test_other_values_are_cut_off(
    engine: duckdb.DuckDBPyConnection, value: str, number: int | None
) -> None:
    assert engine.execute(f"SELECT inner_bigint({value})").fetchall() == [(number,)]


def test_a_single_call_is_repeated_and_a_random_number_is_not() -> None:
    member = "get_json_object(attributes['mlflow.chat.tokenUsage'], '$.total_tokens')"
    statement = statement_check.translate(f"SELECT CAST({member} AS BIGINT) FROM spans")
    assert "lambda" not in statement.sql
    for drawn in ("rand()", "rand() * 1000"):
        statement = statement_check.translate(f"SELECT CAST({drawn} AS BIGINT) FROM spans")
        assert statement.sql.count("lambda") == 1
    nested = f"CAST({member} AS BIGINT)"
    for _ in range(6):
        nested = f"CAST(CAST({nested} AS STRING) AS BIGINT)"
    assert len(statement_check.translate(f"SELECT {nested} FROM spans").sql) < 4000
