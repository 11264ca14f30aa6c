"""Columns keep every int64 and every double, and are a fraction of the JSON that they replace."""

from __future__ import annotations

import json
import math
import random
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.metrics import Metric
from mlcore.repos.runs.history import point_columns

INT64 = st.integers(-(2**63), 2**63 - 1)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
POINTS = st.lists(
    st.tuples(st.floats(), INT64 | st.integers(-2, 2), INT64 | st.integers(-2, 2)), max_size=9
)
SERIES = st.dictionaries(KEYS, POINTS, max_size=5)


def bits(metric: Metric) -> tuple[object, ...]:
    """Every NaN is the same one here, and -0.0 is not 0.0."""
    value = math.nan if math.isnan(metric.value) else metric.value
    return metric.key, struct.pack(">d", value), metric.timestamp, metric.step


def metrics_of(points_by_key: dict[str, list[tuple[float, int, int]]]) -> dict[str, list[Metric]]:
    return {key: [Metric(key, *point) for point in points] for key, points in points_by_key.items()}


@given(SERIES)
def test_columns_come_back(points_by_key: dict[str, list[tuple[float, int, int]]]) -> None:
    series = metrics_of(points_by_key)
    data, digest = point_columns.pack(series)
    unpack = point_columns.unpack(data)
    assert list(unpack) == list(series)
    assert [list(map(bits, points)) for points in unpack.values()] == [
        list(map(bits, points)) for points in series.values()
    ]
    for key, metrics in series.items():
        (alone,) = point_columns.unpack(data, key).values()
        assert list(map(bits, alone)) == list(map(bits, metrics))
        assert point_columns.count(data, key) == len(metrics)
    assert point_columns.unpack(data, "is no key here") == {}
    assert point_columns.count(data, "is no key here") == 0
    assert point_columns.pack(series) == (data, digest)


def test_a_digest_is_of_points_and_not_of_how_they_were_compressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    series = {"k": [Metric("k", n / 7, n, n) for n in range(100)]}
    data, digest = point_columns.pack(series)
    monkeypatch.setattr(point_columns, "compressed", lambda body: zlib.compress(body, 1))
    other, same = point_columns.pack(series)
    assert (other != data, same) == (True, digest)
    assert point_columns.unpack(other) == series


def test_what_a_later_version_wrote_is_refused() -> None:
    with pytest.raises(point_columns.UnknownColumns):
        point_columns.unpack(b"\x80" + zlib.compress(b""))


def _walk(chance: random.Random) -> Callable[[int], float]:
    at = [3.0]

    def value(_: int) -> float:
        at[0] = at[0] * 0.999 + chance.gauss(0, 0.01)
        return at[0]

    return value


def _single(chance: random.Random) -> Callable[[int], float]:
    walk = _walk(chance)

    def value(n: int) -> float:
        (single,) = struct.unpack("f", struct.pack("f", walk(n)))
        return float(single)

    return value


@pytest.mark.parametrize(
    ("values", "most", "times"),
    [(_walk, 7.6, 5.0), (_single, 4.4, 9.0), (lambda _: lambda n: n * 32.0, 1.1, 25.0)],
    ids=["doubles", "singles", "counts"],
)
def test_bytes_of_a_point(
    values: Callable[[random.Random], Callable[[int], float]], most: float, times: float
) -> None:
    """A step every 70 ms, give or take; measured against JSON."""
    chance = random.Random(1)
    value = values(chance)
    timestamp = 1_700_000_000_000
    series = []
    for step in range(4096):
        timestamp += 70 + chance.randint(-8, 8)
        series.append(Metric("loss", value(step), timestamp, step))
    data, _ = point_columns.pack({"loss": series})
    text = json.dumps([[p.step, p.timestamp, p.value] for p in series], separators=(",", ":"))
    assert len(data) / len(series) < most
    assert len(text) > times * len(data)
