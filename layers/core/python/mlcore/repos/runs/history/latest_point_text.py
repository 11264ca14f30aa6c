"""The text form of a metric's latest point in the run item.

Step, timestamp and value in order-preserving hexadecimal, concatenated, so that DynamoDB's
comparison of two such strings follows MLflow's rule for the latest point; a trailing ``N`` marks
NaN (which compares as 0). Every double is restored exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
    """Returns the latest point of each metric of a run, parsed from the texts in which the run's
    item holds these points.

    Args:
        texts: the texts in the run item, by metric.
    """
    metrics = {
        key: _metric((key, value, timestamp, step))
        for key, (step, timestamp, value) in zip(
            texts, parse_points([text[:48] for text in texts.values()]), strict=True
        )
    }
    for key, text in texts.items():
        if len(text) > 48:
            metrics[key] = metrics[key]._replace(value=math.nan)
    return metrics


def newer_texts(stored: Mapping[str, str], latest: Mapping[str, Metric]) -> dict[str, str]:
    """Returns the texts of those points that are more recent than the run's latest ones. Only such
    texts can be written: a write of any other fails its condition and would be repeated in vain.

    Args:
        stored: the texts in the run item, by metric.
        latest: the points to write, by metric.
    """
    return {
        key: latest_text(metric)
        for key, metric in latest.items()
        if key not in stored or recency(metric) > recency(parse_latest(key, stored[key]))
    }


def latest_of(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Returns the latest point of each metric; of equal ones the first, because MLflow replaces a
    point only by a strictly later one."""
    latest: dict[str, Metric] = {}
    for metric in metrics:
        known = latest.get(metric.key)
        if known is None or recency(metric) > recency(known):
            latest[metric.key] = metric
    return latest
