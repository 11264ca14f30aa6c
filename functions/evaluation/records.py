"""The rules of the records of evaluation datasets: the same inputs are the same record."""

from __future__ import annotations

import json
from typing import Any, Final

from evaluation import messages as m
from evaluation.datasets import changed
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord
from mlcore.http import Request
from mlcore.limits.evaluation.datasets import (
    check_record,
    digest,
    last_user,
    merged,
    new_record,
    profile_of,
    record_id,
    schema_with,
)
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.evaluation import records as evaluation_records
from mlcore.repos.evaluation.records import Place
from mlcore.responses.evaluation import datasets as responses
from mlcore.settle import Conflict, settle

QUERY_RECORDS: Final = 1000
"""At most so many are asked for at once."""


def upsert_records(message: m.UpsertDatasetRecords, request: Request) -> dict[str, Any]:
    """A record with the inputs of another one joins it, within a request as well."""
    records = _records(message.records)
    found = evaluation_datasets.find(request.workspace, message.dataset_id)
    if found is None:
        if not records:
            return {"inserted_count": 0, "updated_count": 0}
        raise errors.BadRequest(f"Evaluation dataset with id '{message.dataset_id}' not found")
    now = ids.now_ms()
    inserted, updated = _write(found, records, now)

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        return dataset._replace(
            last_update_time=now,
            last_updated_by=last_user(records),
            digest=digest(dataset.name, now),
            schema=schema_with(dataset.schema, records) if records else dataset.schema,
            profile=profile_of(evaluation_records.count(dataset), dataset.profile),
        )

    changed(found.dataset_id, request, change)
    return {"inserted_count": inserted, "updated_count": updated}


def get_records(message: m.GetDatasetRecords, request: Request) -> dict[str, Any]:
    """Oldest first. A page holds what fits an answer."""
    limit = message.max_results or 1000
    if limit < 0:
        raise errors.InvalidParameterValue(
            f"Invalid value {limit} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    dataset_id = message.dataset_id
    after = _place_in(message.page_token, dataset_id)
    dataset = evaluation_datasets.find(request.workspace, dataset_id)
    if dataset is None:
        return {"records": "[]"}
    texts: list[str] = []
    weight, last, more = 0, after, False
    for record in evaluation_records.in_order(dataset, after, min(limit + 1, QUERY_RECORDS)):
        text = json.dumps(responses.record(record))
        weight += 2 * len(text)
        if texts and (len(texts) == limit or weight > paging.RESPONSE_WEIGHT):
            more = True
            break
        texts.append(text)
        last = evaluation_records.place_of(record)
    answer = {"records": f"[{', '.join(texts)}]"}
    if more and last is not None:
        answer["next_page_token"] = paging.token(list(last), dataset_id)
    return answer


def delete_records(message: m.DeleteDatasetRecords, request: Request) -> dict[str, Any]:
    found = evaluation_datasets.find(request.workspace, message.dataset_id)
    if found is None:
        return {"deleted_count": 0}
    wanted = list(dict.fromkeys(filter(None, message.dataset_record_ids)))
    there = evaluation_records.find_many(found, wanted)
    evaluation_records.delete(found, list(there))

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        left = evaluation_records.count(dataset)
        return dataset._replace(profile=profile_of(left, dataset.profile))

    changed(found.dataset_id, request, change)
    return {"deleted_count": len(there)}


def _records(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if found == {}:
        return []
    if not isinstance(found, list):
        raise errors.InvalidParameterValue("Parameter 'records' must be the JSON text of a list.")
    return [check_record(each) for each in found]


def _write(dataset: EvaluationDataset, records: list[dict[str, Any]], now: int) -> tuple[int, int]:
    """How many records are new, and how often one joined another."""
    by_id: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for position, each in enumerate(records):
        by_id.setdefault(record_id(dataset.dataset_id, each), []).append((position, each))
    inserted: set[str] = set()
    left = list(by_id)

    def attempt() -> None:
        nonlocal left
        there = evaluation_records.find_many(dataset, left)
        wanted: list[EvaluationRecord] = []
        for name in left:
            record = there.get(name)
            inserted.discard(name)
            for position, each in by_id[name]:
                if record is None:
                    record = new_record(dataset.dataset_id, each, now, position)
                    inserted.add(name)
                else:
                    record = merged(record, each, now)
            if record is not None:
                wanted.append(record)
        left = list(evaluation_records.write(wanted))
        if left:
            raise Conflict

    settle("dataset", attempt)
    return len(inserted), len(records) - len(inserted)


def _place_in(token: str, dataset_id: str) -> Place | None:
    position = paging.position_of(token, dataset_id)
    if position is None:
        return None
    if [type(part) for part in position] != [int, int, str]:
        raise errors.InvalidParameterValue("Invalid page token")
    created_time, number, last_id = position
    return int(str(created_time)), int(str(number)), str(last_id)
