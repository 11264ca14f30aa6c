"""A sample is what SQL's NTILE chooses, however the history is kept."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.entities.metrics import Metric, recency
from mlcore.repos.runs.history import metric_history, metric_sampling, point_columns
from mlcore.repos.runs.history.latest_points import Latest
from mlcore.repos.runs.history.metric_history import HistoryParts
from mlcore.repos.runs.history.metric_sampling import SampleRequest
from tests.examples import number_of

FAR = 2**63 - 1
VALUES = st.sampled_from((-1.5, 0.0, 1.0, math.nan))
MOMENTS = st.integers(-3, 12)
ANY_POINT = st.builds(Metric, st.just("k"), VALUES, MOMENTS, MOMENTS | st.sampled_from((-FAR, FAR)))
STEPPED = st.lists(VALUES, max_size=30).map(
    lambda values: [Metric("k", value, 5 - at // 3, 2 * at) for at, value in enumerate(values)]
)
"""As most histories are: each point has a later step than the one before."""
LOGGED = STEPPED | st.lists(ANY_POINT, max_size=20)
BESIDE = [Metric("other", 7.0, 1, 1)]


def kept(series: Sequence[Metric], cuts: Sequence[int], chance: Any) -> HistoryParts:
    """The series in parts, each kept in one of the ways, and some in two."""
    stored = HistoryParts([], [], [])
    ends = sorted({min(cut, len(series)) for cut in cuts} | {len(series)})
    parts = [series[begin:end] for begin, end in zip([0, *ends], ends, strict=False) if end > begin]
    chance.shuffle(parts)
    for part in parts:
        for form in chance.choice(("b", "p", "s", "b", "p", "s", "bp", "bs")):
            if form == "b":
                stored.batches.extend(metric_history.items("1", "r", [*part, *BESIDE]))
            elif form == "p":
                stored.packs.extend(metric_history.history_items("1", "r", "k", part))
            else:
                stored.segments.append(point_columns.pack({"k": part})[0])
    return stored


def chosen_by_sql(series: Sequence[Metric], wanted: SampleRequest) -> list[tuple[str, int, int]]:
    """Value, timestamp and step of what MLflow's statement chooses of distinct points."""
    rows = {
        (0.0 if math.isnan(point.value) else point.value, math.isnan(point.value), *point[2:])
        for point in series
    }
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE points (value REAL, is_nan INT, timestamp INT, step INT)")
    connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
    order = "step, timestamp, value, is_nan"
    between = ""
    if wanted.low is not None and wanted.high is not None:
        between = f"WHERE step BETWEEN {wanted.low} AND {wanted.high}"
    ordered = connection.execute(
        f"SELECT value, is_nan, timestamp, step, NTILE({wanted.limit}) OVER (ORDER BY {order}) "
        f"FROM points {between} ORDER BY {order}"
    ).fetchall()
    connection.close()
    firsts = {bucket: row for *row, bucket in reversed(ordered)}
    results = [firsts[bucket] for bucket in sorted(firsts)]
    if ordered and results[-1] != list(ordered[-1][:4]):
        results = [*results[: wanted.limit - 1], list(ordered[-1][:4])]
    return [("NaN" if nan else repr(value), moment, step) for value, nan, moment, step in results]


@given(
    series=LOGGED,
    cuts=st.lists(st.integers(0, 30), max_size=4),
    latest=st.none() | ANY_POINT | st.just("last"),
    limit=st.integers(1, 12),
    reach=st.none() | st.tuples(MOMENTS, MOMENTS),
    in_history=st.booleans(),
    chance=st.randoms(use_true_random=False),
)
@settings(max_examples=number_of(400), deadline=None, database=None)
def test_what_is_sampled_is_what_sql_would_choose(
    series: list[Metric],
    cuts: list[int],
    latest: Any,
    limit: int,
    reach: tuple[int, int] | None,
    in_history: bool,
    chance: Any,
) -> None:
    """Of the points that are no later than the latest value, which is one of them unless history
    expires."""
    if latest == "last":
        latest = series[-1] if series else None
    low, high = reach or (None, None)
    wanted = SampleRequest("k", low, high, limit)
    of_run = None if latest is None else Latest(latest, in_history)
    columns = metric_sampling.of(kept(series, cuts, chance), of_run, wanted)
    points = [
        ("NaN" if math.isnan(point.value) else repr(point.value), point.timestamp, point.step)
        for point in columns.points("k")
    ]
    known = [point for point in series if latest and recency(point) <= recency(latest)]
    assert points == chosen_by_sql([*known, *([latest] if latest and in_history else [])], wanted)
