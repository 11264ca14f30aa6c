"""Lists, maps and structs as texts, and intervals that are computed: compared with Python's own
computation, and with the examples of Databricks' pages on cast, to_json and make_dt_interval."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.spark_engine import Engine

TEXTS = (
    "",
    "a",
    'q"uote',
    "back\\slash",
    "null",
    '","b":null',
    "{x -> y}",
    "ünïcode 漢",
    "two\nlines",
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.connection.close()


def _answers(engine: Engine, expressions: list[str]) -> list[Any]:
    ((*values,),) = engine.ask(f"SELECT {', '.join(expressions)}")["rows"]
    return values


def _literal(value: Any) -> str:
    if value is None:
        return "CAST(NULL AS STRING)"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "r'" + value.replace("'", "''") + "'"


def _shown(value: Any) -> str:
    """A member as Spark casts it to a text."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _random_texts(rng: random.Random) -> list[str | None]:
    return [rng.choice((*TEXTS, None)) for _ in range(rng.randrange(1, 4))]


def test_maps_lists_and_structs_are_cast_to_texts(engine: Engine) -> None:
    rng = random.Random(5)
    expressions, expected = [], []
    for _ in range(20):
        values = _random_texts(rng)
        entries = {f"key {n}": value for n, value in enumerate(values)}
        members: dict[str, Any] = {"number": rng.randrange(-9, 9), "flag": rng.random() < 0.5}
        members |= {f"m{n}": value for n, value in enumerate(values)}
        given = ", ".join(f"'{key}', {_literal(value)}" for key, value in entries.items())
        expressions.append(f"CAST(map({given}) AS STRING)")
        expected.append("{" + ", ".join(f"{k} -> {_shown(v)}" for k, v in entries.items()) + "}")
        given = ", ".join(f"'{key}', {_literal(value)}" for key, value in members.items())
        expressions.append(f"string(named_struct({given}))")
        expected.append("{" + ", ".join(map(_shown, members.values())) + "}")
        expressions.append(f"CAST(array({', '.join(map(_literal, values))}) AS STRING)")
        expected.append("[" + ", ".join(map(_shown, values)) + "]")
    assert _answers(engine, expressions) == expected


def test_values_are_written_as_json(engine: Engine) -> None:
    """A NULL member of a struct is left out, that of a map or a list is not."""
    rng = random.Random(6)
    expressions, expected = [], []
    for _ in range(20):
        values = _random_texts(rng)
        members: dict[str, Any] = {"number": rng.randrange(-9, 9), "flag": rng.random() < 0.5}
        members |= {f"m{n}": value for n, value in enumerate(values)}
        given = ", ".join(f"'{key}', {_literal(value)}" for key, value in members.items())
        struct = f"named_struct({given})"
        written = {name: value for name, value in members.items() if value is not None}
        entries = {f"key {n}": value for n, value in enumerate(values)}
        pairs = ", ".join(f"'{key}', {_literal(value)}" for key, value in entries.items())
        for sql, value in (
            (struct, written),
            (f"array({struct}, {struct})", [written, written]),
            (f"map({pairs})", entries),
            (f"array({', '.join(map(_literal, values))})", values),
            (f"map('n', {members['number']})", {"n": members["number"]}),
        ):
            expressions.append(f"to_json({sql})")
            expected.append(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    assert _answers(engine, expressions) == expected


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("to_json(named_struct('a', 1, 'b', 2))", '{"a":1,"b":2}'),
        ("to_json(array(named_struct('a', 1, 'b', 2)))", '[{"a":1,"b":2}]'),
        ("to_json(map('a', 1))", '{"a":1}'),
        ("make_dt_interval(100, 13)", "100 13:00:00.000000000"),
        ("make_dt_interval(100, null)", None),
        ("make_dt_interval(0, 25)", "1 01:00:00.000000000"),
        ("make_dt_interval(0, 0, 1, -0.1)", "0 00:00:59.900000000"),
        ("make_dt_interval()", "0 00:00:00.000000000"),
    ],
)
def test_examples_of_the_pages_have_their_answers(engine: Engine, sql: str, answer: Any) -> None:
    assert _answers(engine, [sql]) == [answer]


def test_intervals_are_the_sum_of_their_parts(engine: Engine) -> None:
    rng = random.Random(7)
    start = datetime(2024, 2, 28, 12, tzinfo=UTC)
    expressions, expected = [], []
    for _ in range(40):
        days, hours, minutes = (rng.randrange(-90, 90) for _ in range(3))
        micros = rng.randrange(-90_000_000, 90_000_000)
        sign = rng.choice((1, -1))
        seconds = f"CAST({micros} AS DECIMAL(18, 6)) / 1000000"
        interval = f"make_dt_interval({days}, {hours}, {minutes}, {seconds})"
        expressions.append(
            f"CAST(timestamp'2024-02-28 12:00:00' {'+' if sign > 0 else '-'} {interval} AS STRING)"
        )
        passed = timedelta(days=days, hours=hours, minutes=minutes, microseconds=micros)
        moment = (start + sign * passed).strftime("%Y-%m-%d %H:%M:%S.%f")
        expected.append(moment.rstrip("0").removesuffix("."))
    assert _answers(engine, expressions) == expected


def test_intervals_take_columns_and_dates(engine: Engine) -> None:
    answer = engine.ask(
        "SELECT count(*), count_if(start_time + make_dt_interval(0, n) > start_time), "
        "max(CAST(date'2024-01-01' + make_dt_interval(n) AS STRING)) "
        "FROM system.mlflow.runs_latest CROSS JOIN (SELECT explode(array(1, 2)) AS n) "
        "WHERE start_time IS NOT NULL"
    )
    ((count, later, last),) = answer["rows"]
    assert count == later > 0
    assert last == "2024-01-03 00:00:00"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("make_dt_interval(2147483647)", "out of range"),
        ("make_dt_interval(1.5)", "whole days"),
        ("make_dt_interval(1, 2, 3, 4, 5)", "0 to 4 arguments"),
        ("make_dt_interval('x')", "x"),
        ("CAST(array(1.5D) AS STRING)", "whole numbers"),
        ("CAST(named_struct('a', named_struct('b', 1)) AS STRING)", "whole numbers"),
        ("to_json(named_struct('a', 1.5D))", "whole numbers"),
        ("to_json(named_struct('a', named_struct('b', 1)))", "whole numbers"),
        ("CAST(INTERVAL 1 DAY AS STRING)", "interval"),
    ],
)
def test_what_has_no_answer_here_is_refused(engine: Engine, sql: str, words: str) -> None:
    assert words in (engine.failure(f"SELECT {sql}") or "answered")
