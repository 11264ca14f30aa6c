"""Strange values in spans, assessments and records of one user: each is stored or refused with 4xx,
and the statistics of the experiment, which everybody reads, are answered all the same."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mlcore.repos.evaluation import dataset_records
from mlcore.search.trace_metrics import METRICS, PERCENTILE
from tests.contract.conftest import Store
from tests.contract.route_world import World
from tests.contract.trace_calls import export, infos, span, whole

STRANGE: Final = (
    *('"\\ud800"', '{"\\ud800": 1}', "[1]", '{"a": {"b": 1}}', "1", "true", "null", "NaN", "1e999"),
    *("9" * 4000, "\0", "", "[" * 500),
    '{"input_tokens": "x", "output_tokens": [1], "total_tokens": 1e400, "total_cost": {}}',
)
"""Values of attributes; those that are JSON are stored as such."""
NAMES: Final = (
    *("mlflow.spanType", "mlflow.llm.model", "mlflow.llm.provider", "mlflow.llm.cost"),
    *("mlflow.chat.tokenUsage", "session.id", "user.id", "mlflow.traceTag.mlflow.traceName"),
    *("mlflow.traceTag.other", "mlflow.spanInputs", "gen_ai.usage.input_tokens"),
)


def _is_too_long(name: str, value: str) -> bool:
    return name == "session.id" and len(value) > 250


@pytest.fixture
def world(store: Store) -> World:
    made = World()
    made.prepare("evaluation")
    return made


def test_statistics_of_spans(world: World) -> None:
    experiment, exported = world.names["experiment"], 0
    for name in NAMES:
        for value in STRANGE:
            exported += 1
            attributes: Any = {name.replace(".", "__"): value}
            answer = export(experiment, [span(f"{exported:032x}", 1, **attributes)])
            assert answer.status == (400 if _is_too_long(name, value) else 200), (name, value)
            if answer.status == 200:
                assert len(whole(f"tr-{exported:032x}")["spans"]) == 1
    assert len(infos(experiment)) == 100
    for view, metrics in METRICS.items():
        for metric, (aggregations, dimensions) in metrics.items():
            query = {
                "experiment_ids": [experiment],
                "view_type": view,
                "metric_name": metric,
                "aggregations": [
                    {
                        "aggregation_type": kind,
                        **({"percentile_value": 50} if kind == PERCENTILE else {}),
                    }
                    for kind in aggregations
                ],
            }
            counts = {
                dimension: world.made(
                    "POST", "/3.0/mlflow/traces/metrics", **query, dimensions=[dimension]
                )
                for dimension in dimensions
            }
            if metric == "span_count":
                types = counts["span_type"]["data_points"]
                assert {"[1]", "1", "true", '{"a": {"b": 1}}'} <= {
                    point["dimensions"]["span_type"] for point in types
                }


def test_values_of_assessments(world: World) -> None:
    for value in STRANGE:
        serialized = {"value": value, "serialization_format": "JSON_FORMAT"}
        assessment = {
            "assessment_name": "expected",
            "source": {"source_type": "HUMAN", "source_id": "me"},
            "expectation": {"serialized_value": serialized},
        }
        path = "/3.0/mlflow/traces/{trace_id}/assessments"
        status, body = world.send("POST", path, {"assessment": assessment})
        assert status in {200, 400}, (value, body)


def test_users_of_records(world: World) -> None:
    path = "/3.0/mlflow/datasets/{dataset_id}/records"
    before = world.made("GET", path)
    for user in (1, 1.5, True, ["a"], {"a": 1}, "\ud800"):
        records = [{"inputs": {"q": str(user)}, "tags": {"mlflow.user": user}}]
        status, body = world.send("POST", path, {"records": json.dumps(records)})
        assert status == 400, (user, body)
    assert world.made("GET", path) == before


def test_merged_records(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The item of a record is compressed, so its limit would admit hundreds of megabytes."""
    monkeypatch.setattr(dataset_records, "MAX_JSON_BYTES", 50_000)
    path = "/3.0/mlflow/datasets/{dataset_id}/records"
    statuses = []
    for number in range(5):
        record = {"inputs": {"q": 1}, "expectations": {f"k{number}": "a" * 14_000}}
        status, _ = world.send("POST", path, {"records": json.dumps([record])})
        statuses.append(status)
    assert statuses == [200, 200, 200, 400, 400]
    (_, merged) = json.loads(world.made("GET", path)["records"])
    assert merged["expectations"].keys() == {"k0", "k1", "k2"}
