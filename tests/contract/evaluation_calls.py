"""Requests to the routes of evaluation: datasets, records, schemas."""

from __future__ import annotations

import json
from typing import Any

import evaluation.app
from tests.contract.api import Answer, called

Fields = dict[str, Any]


YES_NO = {"pass_fail": {"positive_label": "yes", "negative_label": "no"}}


def ask(method: str, path: str, body: Any = None, **query: Any) -> Answer:
    return called(evaluation.app.handler, method, f"/api/3.0/mlflow/{path}", body, **query)


def sent(method: str, path: str, body: Any = None, **query: Any) -> Any:
    answer = ask(method, path, body, **query)
    assert answer.status == 200, answer
    return answer.body


def new_dataset(**fields: Any) -> str:
    created = sent("POST", "datasets/create", {"name": "d", **fields})
    return str(created["dataset"]["dataset_id"])


def upsert(dataset_id: str, *records: Fields) -> Answer:
    return ask("POST", f"datasets/{dataset_id}/records", {"records": json.dumps(records)})
