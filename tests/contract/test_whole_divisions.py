"""Quotients of whole numbers are the same whether the statement shows that they are whole numbers
(``dialect/whole_numbers.py``) or DuckDB finds that out."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from mltables import statement_check
from mltables.dialect import macros
from mltables.duckdb_connection import connect
from tests.contract.conftest import EXAMPLES

ENDS = (0, 1, 999, 1_000, 10**6, 2**31, 2**53, 10**16, 17 * 10**17, 2**63 - 1)
DIVISORS = ("1", "7", "999", "1000", "1000000", "1000000000", "1e3", "1e6", "0.001", "1000.0",
            "1000000.0", "12345678.25", "123456789012345.5", "0")  # fmt: skip
START, END = "start_time_unix_nano", "end_time_unix_nano"


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine with spans of all lengths."""
    rng = random.Random(1)
    numbers = [sign * max(0, end + rng.randrange(-2, 3)) for end in ENDS for sign in (1, -1)]
    numbers += [rng.randrange(-(2**bits), 2**bits) for bits in range(1, 63) for _ in range(4)]
    pairs = [(min(n, 2**63 - 1), rng.choice((None, n // 2))) for n in numbers]
    with connect(None) as connection:
        macros.set_arithmetic_errors(connection)
        connection.execute("CREATE SCHEMA mlflow")
        connection.execute(f"CREATE TABLE mlflow.spans ({START} BIGINT, {END} BIGINT)")
        connection.executemany("INSERT INTO mlflow.spans VALUES (?, ?)", pairs)
        yield connection


def _answer(engine: duckdb.DuckDBPyConnection, sql: str) -> str:
    translated = statement_check.translate(sql).sql
    macros.create_macros(engine, translated)
    try:
        return repr(engine.execute(translated).fetchall())
    except (duckdb.Error, RuntimeError):
        return "error"


def _expressions(rng: random.Random) -> str:
    operand = rng.choice(
        (START, f"s.{END}", f"({END} - {START})", f"({START})", "12", f"{START} + 1")
    )
    quotient = f"{operand} / {rng.choice(DIVISORS)}"
    return rng.choice(
        (
            quotient,
            f"CAST({quotient} AS BIGINT)",
            f"CAST(({quotient}) AS BIGINT)",
            f"CAST({quotient} AS STRING)",
            f"round({quotient}, 2)",
            f"({quotient})::BIGINT / 7",
            f"max({quotient})",
            f"avg(CAST({quotient} AS BIGINT)) / 1000",
        )
    )


def test_a_quotient_is_that_of_unknown_numbers(engine: duckdb.DuckDBPyConnection) -> None:
    """Under another name, a column may be anything."""
    rng = random.Random(1)
    errors = 0
    for _ in range(16 * EXAMPLES):
        expression = _expressions(rng)
        renamed = expression.replace(START, "a").replace(END, "b")
        known = _answer(engine, f"SELECT {expression} AS q FROM spans s")
        unknown = _answer(
            engine, f"SELECT {renamed} AS q FROM (SELECT {START} AS a, {END} AS b FROM spans) s"
        )
        assert known == unknown, expression
        errors += known == "error"
    assert errors < 8 * EXAMPLES


DECIMAL = "CAST(1.25 AS DECIMAL(10, 2))"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {START} / 3 FROM (SELECT {DECIMAL} AS {START})",
        f"WITH c({START}) AS (SELECT {DECIMAL}) SELECT {START} / 3 FROM c",
        f"SELECT {START} / 3 FROM (SELECT {START} FROM spans UNION ALL SELECT {DECIMAL})",
        f"SELECT s.{START} / 3 FROM (SELECT named_struct('{START}', {DECIMAL}) AS s)",
        f"SELECT {START} / 3 FROM spans LATERAL VIEW explode(array({DECIMAL})) t AS {START}",
        f"SELECT {START} / 3 FROM (SELECT {START.upper()} * 1.5 AS {START.upper()} FROM spans)",
        f"SELECT transform(array({DECIMAL}), {START} -> {START} / 3) FROM spans",
    ],
)
def test_a_name_that_may_mean_another_value_is_not_trusted(sql: str) -> None:
    assert "inner_divide" in statement_check.translate(sql).sql


def test_known_whole_numbers_are_divided_at_once() -> None:
    sql = f"SELECT CAST(({END} - {START}) / 1000 AS BIGINT), ({END} - {START}) / 1e6 FROM spans"
    translated = statement_check.translate(sql).sql
    assert "inner_divide" not in translated
    assert "inner_bigint" not in translated


def test_a_quotient_of_a_whole_number_and_a_decimal_has_no_alternatives() -> None:
    sql = statement_check.translate(f"SELECT ({END} - {START}) / 1000000.0 AS ms FROM spans").sql
    assert f"round(({END} - {START}) / 1000000.0, 9)" in sql
    assert "inner_" not in sql
