"""Statements that DuckDB once planned for seconds, and those that are planned in another way than
their general form: both have the same answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.contract.spark_engine import Engine

MASK = 0xFFFF_FFFF


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.connection.close()


def rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & MASK


def murmur3(number: int, seed: int) -> int:
    """Murmur3 with 32 bits of one INT."""
    word = rotated(number * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    value = (rotated(seed ^ word, 13) * 5 + 0xE6546B64 & MASK) ^ 4
    value = (value ^ value >> 16) * 0x85EBCA6B & MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & MASK
    return value ^ value >> 16


def test_a_hash_of_many_values(engine: Engine) -> None:
    """Each value is hashed with the hash before it as seed; the plan does not double with each."""
    rng = random.Random(16)
    numbers = [rng.randrange(-(2**31), 2**31) for _ in range(16)]
    expected = 42
    for number in numbers:
        expected = murmur3(number & MASK, expected)
    given = ", ".join(f"CAST({number} AS INT)" for number in numbers)
    answer = engine.ask(f"SELECT hash({given})")["rows"]
    signed = expected - (1 << 32) if expected >> 31 else expected
    assert answer == [[signed]]


def test_written_dates_and_times_are_those_of_columns(engine: Engine) -> None:
    rng = random.Random(7)
    texts = ["2024-02-29", "2023-02-29", "0000-01-01", "2024-1-1", "2024-01-01 24:00:00", "x"]
    for _ in range(8):
        moment = datetime(1, 1, 1) + timedelta(microseconds=rng.randrange(315_537_897_599_999_999))
        texts += [str(moment.date()), str(moment), str(moment.replace(microsecond=0))]
        texts += [f"{moment:%H}:{moment}", moment.isoformat(), f"{moment}Z", f"{moment.date()} "]
    for text in texts:
        for kind in ("DATE", "TIMESTAMP"):
            written = f"SELECT {kind} '{text}'"
            computed = f"SELECT CAST(x AS {kind}) FROM VALUES ('{text}') t(x)"
            if engine.failure(computed):
                assert engine.failure(written), text
            else:
                assert engine.ask(written)["rows"] == engine.ask(computed)["rows"], text
