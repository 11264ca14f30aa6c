"""Evaluation in the UI: datasets with their records, and what waits for a review."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import Data, Traces
from tests.browser.visitor import Visitor
from tests.differential.rest import Call

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
V3 = "/api/3.0/mlflow/"


def _sent(data: Data, path: str, body: Any) -> Any:
    return data.ask(Call("POST", V3 + path, body))


def test_datasets(visitor: Visitor, data: Data, traces: Traces) -> None:
    named = {"name": "questions", "experiment_ids": [traces.experiment]}
    dataset = _sent(data, "datasets/create", named)["dataset"]["dataset_id"]
    records = [{"inputs": {"question": f"why {n}?"}, "expectations": {"a": n}} for n in range(3)]
    _sent(data, f"datasets/{dataset}/records", {"records": json.dumps(records)})
    visitor.open(f"/experiments/{traces.experiment}/datasets")
    visitor.looks("evaluation-datasets", "questions")
    visitor.go(f"/experiments/{traces.experiment}/datasets/{dataset}")
    visitor.looks("evaluation-dataset", "why 2?")


def test_review_queue(visitor: Visitor, data: Data, traces: Traces) -> None:
    mine = {"experiment_id": traces.experiment, "user": "default"}
    queue = _sent(data, "review-queues/get-or-create-user", mine)["review_queue"]["queue_id"]
    waiting = {"queue_id": queue, "item_ids": traces.made[:2]}
    _sent(data, "review-queues/items/add", waiting)
    visitor.open(f"/experiments/{traces.experiment}/review-queue")
    visitor.looks("review-queue", "Review")
