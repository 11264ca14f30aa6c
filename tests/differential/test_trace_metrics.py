"""Metrics and correlations of traces: stock MLflow and the product, told the same traces, give the
same answers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mlcore.search.trace_metrics import METRICS
from tests.differential.trace_pair import ID, Two
from tests.differential.trace_worlds import COUNT, MS, SEED, World


@pytest.fixture(scope="module")
def world(stock_url: str, product_url: str) -> World:
    return World(Two(stock_url, product_url), random.Random(SEED + 3))


METRIC_FILTERS = {
    "TRACES": (
        *("trace.status = 'OK'", "trace.tag.k = 'a'", 'trace.metadata.`mlflow.sourceRun` = "r1"'),
        *(
            "trace.metadata.`mlflow.trace.session` = 's1'",
            "span.name = 'a'",
            "trace.status LIKE 'a'",
        ),
        *(
            "trace.tag.`mlflow.traceName` = 'chat'",
            "status = 'OK'",
            "trace.tag = 'a'",
            "foo.x = 'a'",
        ),
    ),
    "SPANS": (
        'span.type = "TOOL"',
        "span.status = 'OK'",
        "span.name = 'chat'",
        "trace.status = 'OK'",
    ),
    "ASSESSMENTS": (
        'assessment.type = "feedback"',
        "assessment.name = 'quality'",
        "trace.tag.k = 'a'",
    ),
}
SIMPLE = ("COUNT", "SUM", "AVG", "MIN", "MAX", "PERCENTILE")


def test_random_metrics(world: World) -> None:
    rng, answered = random.Random(SEED + 2), 0
    for _ in range(COUNT // 4):
        view = rng.choice(tuple(METRICS))
        metric = rng.choice(
            (*METRICS[view], "nothing") if rng.random() < 0.1 else tuple(METRICS[view])
        )
        allowed, dimensions = METRICS[view].get(metric, ((), ()))
        kinds = SIMPLE if rng.random() < 0.1 else allowed or SIMPLE
        count = 0 if rng.random() < 0.1 else 2
        aggregations: list[dict[str, Any]] = [
            {"aggregation_type": kind, "percentile_value": rng.choice((0, 50, 90, 99.5))}
            if kind == "PERCENTILE"
            else {"aggregation_type": kind}
            for kind in rng.choices(kinds, k=count)
        ]
        body: dict[str, Any] = {
            "experiment_ids": [ID],
            "view_type": view,
            "metric_name": metric,
            "aggregations": aggregations,
            "dimensions": [dimension for dimension in dimensions if rng.random() < 0.5],
            "filters": [condition for condition in METRIC_FILTERS[view] if rng.random() < 0.2],
        }
        if rng.random() < 0.5:
            body.update(start_time_ms=MS + rng.choice((0, 5, 6)), end_time_ms=MS + 86_400_001)
        if rng.random() < 0.4:
            body["time_interval_seconds"] = rng.choice((1, 60, 3600, 86400))
        if rng.random() < 0.2:
            body["max_results"] = rng.choice((0, 1, 2, 5))
        stock, ours = (
            side.ask("POST", "/api/3.0/mlflow/traces/metrics", body)[:2]
            for side in (world.two.stock, world.two.product)
        )
        assert ours[0] == stock[0], (body, stock, ours)
        if stock[0] == 200:
            assert rounded(ours[1]) == rounded(stock[1]), body
            answered += bool(stock[1])
        else:
            assert ours[1]["message"] == stock[1]["message"], body
    assert answered > COUNT / 16


def rounded(value: Any) -> Any:
    """Sums of floats depend on their order."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


def test_correlations(world: World) -> None:
    filters = (
        *("status = 'OK'", "status = 'ERROR'", "feedback.quality IS NOT NULL", "name = 'none'"),
        *("span.type = 'LLM'", "run_id = 'r1'", "timestamp_ms > 0"),
    )
    for first in filters:
        for second in filters[::2]:
            for base in ("", "tags.k IS NULL"):
                body = {"experiment_ids": [ID], "filter_string1": first, "filter_string2": second}
                if base:
                    body["base_filter"] = base
                path = "/api/3.0/mlflow/traces/calculate-filter-correlation"
                stock, ours = (
                    side.ask("POST", path, body) for side in (world.two.stock, world.two.product)
                )
                assert rounded(list(ours)) == rounded(list(stock)), body
    world.two.same("POST", "/api/3.0/mlflow/traces/calculate-filter-correlation", {})
