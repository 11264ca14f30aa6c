"""Times and whole numbers are computed without the calendar of ICU and without texts, and are what
these give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from mltables import statement_check
from mltables.dialect import macros
from mltables.duckdb_connection import connect

EDGES = (
    *(0, -1, 1, 999_999, 86_399_999_999, 86_400_000_000, -62_135_596_800_000_000),
    *(253_402_300_799_999_999, 253_402_300_800_000_000, 9_007_199_254_740_993),
)
"""Microseconds since 1970: around days, and the first and last years of Databricks."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
SLOW = {
    **{f"spark_date_trunc('{unit}', t)": f"date_trunc('{unit}', t)" for unit in UNITS},
    "spark_quarter(t)": "quarter(t)::INTEGER",
    "spark_month(t)": "month(t)::INTEGER",
    "spark_weekofyear(t)": "weekofyear(t)::INTEGER",
    "spark_day(t)": "day(t)::INTEGER",
    "spark_dayofweek(t)": "(dayofweek(t) + 1)::INTEGER",
    "spark_weekday(t)": "(isodow(t) - 1)::INTEGER",
    "spark_dayofyear(t)": "dayofyear(t)::INTEGER",
    "spark_hour(t)": "hour(t)::INTEGER",
    "spark_minute(t)": "minute(t)::INTEGER",
    "spark_second(t)": "second(t)::INTEGER",
    "spark_date(t)": "CAST(t AS DATE)",
    "strftime(inner_utc(t), '%Y-%m-%d %H:%M:%S.%f %j')": "strftime(t, '%Y-%m-%d %H:%M:%S.%f %j')",
    "spark_timestamp_micros(n)": "CAST(make_timestamp(n) AS TIMESTAMPTZ)",
    "spark_timestamp_millis(n // 1000)": "CAST(make_timestamp(n // 1000 * 1000) AS TIMESTAMPTZ)",
}
"""Expressions over a time ``t`` or its microseconds ``n``, and how ICU computes the same."""
BY_TEXT = "TRY_CAST(CAST(trunc(x::DOUBLE) AS VARCHAR) AS BIGINT)"


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(None) as connection:
        macros.set_arithmetic_errors(connection)
        yield connection


def _rows(engine: duckdb.DuckDBPyConnection, values: list[Any], kind: str) -> None:
    engine.execute(
        f"CREATE TABLE given AS SELECT unnest($values::{kind}[]) AS x", {"values": values}
    )


@pytest.mark.parametrize("seed", range(3))
def test_times_are_those_of_the_calendar(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed)
    spans = (4 * 10**15, 6 * 10**16, 9 * 10**18)
    drawn = [rng.randint(-size, size) for size in spans for _ in range(500)]
    _rows(engine, [*EDGES, *drawn, None], "BIGINT")
    times = "(SELECT x AS n, make_timestamptz(x) AS t FROM given)"
    for fast, slow in SLOW.items():
        macros.create_macros(engine, fast)
        found = engine.execute(
            f"SELECT n, {fast}, {slow}, typeof({fast}), typeof({slow}) FROM {times} "
            f"WHERE {fast} IS DISTINCT FROM {slow} OR typeof({fast}) <> typeof({slow})"
        ).fetchall()
        assert found == [], fast


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_whole_parts_are_those_of_the_text(engine: duckdb.DuckDBPyConnection, kind: str) -> None:
    rng = random.Random(5)
    drawn = [rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 18) for _ in range(2000)]
    halves = [number + rng.choice((0, 0.5, -0.5)) for number in map(round, drawn)]
    edges = [0.0, -0.0, -0.5, 2.0**53, 2.0**53 - 1, -(2.0**53) + 1, 2.0**62, None]
    _rows(engine, [*drawn, *halves, *edges], kind)
    macros.create_macros(engine, "inner_bigint(x)")
    found = engine.execute(
        f"SELECT x, inner_bigint(x), {BY_TEXT} FROM given "
        f"WHERE inner_bigint(x) IS DISTINCT FROM {BY_TEXT}"
    ).fetchall()
    assert found == []


@pytest.mark.parametrize("value", ["1e19::DOUBLE", "'nan'::DOUBLE", "'inf'::DOUBLE"])
def test_a_number_that_is_too_large_is_an_error(
    engine: duckdb.DuckDBPyConnection, value: str
) -> None:
    macros.create_macros(engine, "inner_bigint(x)")
    with pytest.raises(duckdb.Error, match="CAST_OVERFLOW"):
        engine.execute(f"SELECT inner_bigint({value})").fetchall()


@pytest.mark.parametrize(
    ("time", "is_known"),
    [
        ("timestamp_millis(start_time_unix_nano)", True),
        ("date_trunc('DAY', (timestamp_micros(start_time_unix_nano)))", True),
        ("time", False),
        ("coalesce(time, time)", False),
        ("max(time)", False),
    ],
)
def test_a_time_is_cast_unless_the_statement_shows_its_type(time: str, is_known: bool) -> None:
    statement = statement_check.translate(f"SELECT date_trunc('DAY', {time}) FROM spans")
    assert ("spark_timestamp(" not in statement.sql) is is_known


@pytest.mark.parametrize(
    "call",
    [
        *(f"spark_timestamp_micros({-(2**63) + more})" for more in (0, 2, 14_454_775_807)),
        *(f"spark_timestamp_millis({-(2**63) // 1000 + more})" for more in (1, 14_454_775)),
    ],
)
def test_times_before_the_least_one_are_errors(
    engine: duckdb.DuckDBPyConnection, call: str
) -> None:
    macros.create_macros(engine, call)
    with pytest.raises(duckdb.ConversionException, match="out of range"):
        engine.execute(f"SELECT CAST({call} AS VARCHAR)").fetchall()


def test_the_least_time_is_one(engine: duckdb.DuckDBPyConnection) -> None:
    least = -9_223_372_022_400_000_000
    macros.create_macros(engine, "spark_timestamp_micros(n)")
    rows = engine.execute(
        f"SELECT epoch_us(spark_timestamp_micros({least})), spark_timestamp_micros(NULL)"
    ).fetchall()
    assert rows == [(least, None)]
