"""Two forms of metric points: the latest point on the run item, and packs of history as they were.

*Latest*: step, timestamp and value in order-preserving hexadecimal, one after the other, so that
DynamoDB's own comparison of two such strings is MLflow's rule for the latest point; ``N`` behind it
marks NaN (whose value takes part as 0). *Pack*: ``[[step, timestamp, value], …]`` with NaN as the
string ``"NaN"``, which earlier versions wrote as JSON (now: :mod:`.point_columns`); every double
comes back exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from mlcore.db.sortable import double, int64_hex, parse_point, parse_points
from mlcore.entities.metrics import Metric, recency

_NAN_MARK = "N"
_metric = partial(tuple.__new__, Metric)


def latest_text(metric: Metric) -> str:
    step, timestamp, value = recency(metric)
    text = int64_hex(step) + int64_hex(timestamp) + double(value)
    return text + _NAN_MARK if math.isnan(metric.value) else text


def parse_latest(key: str, text: str) -> Metric:
    step, timestamp, value = parse_point(text[:48])
    return Metric(key, math.nan if len(text) > 48 else value, timestamp, step)


def parse_all_latest(texts: Mapping[str, str]) -> dict[str, Metric]:
    """:func:`parse_latest` of all metrics of a run."""
    found = {
        key: _metric((key, value, timestamp, step))
        for key, (step, timestamp, value) in zip(
            texts, parse_points([text[:48] for text in texts.values()]), strict=True
        )
    }
    for key, text in texts.items():
        if len(text) > 48:
            found[key] = found[key]._replace(value=math.nan)
    return found


def latest_of(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """The latest point of each key; of equals the first stays, as MLflow replaces by strictly later
    ones only."""
    latest: dict[str, Metric] = {}
    for metric in metrics:
        known = latest.get(metric.key)
        if known is None or recency(metric) > recency(known):
            latest[metric.key] = metric
    return latest


def pack(metrics: Sequence[Metric]) -> list[list[int | float | str]]:
    return [[m.step, m.timestamp, "NaN" if math.isnan(m.value) else m.value] for m in metrics]


def unpack(key: str, points: Iterable[Sequence[int | float | str]]) -> list[Metric]:
    return [
        Metric(key, float(value), int(timestamp), int(step)) for step, timestamp, value in points
    ]
