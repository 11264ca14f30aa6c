"""Adds, lists and deletes records of evaluation datasets. A record is identified by its inputs:
records with equal inputs are merged into one."""

from __future__ import annotations

import json
from typing import Any, Final

from evaluation import dataset_messages as m
from evaluation.datasets import update
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.evaluation.dataset_records import (
    check_record,
    digest,
    extend_schema,
    last_tagged_user,
    merge_record,
    new_record,
    profile_text,
    record_id,
)
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.evaluation import dataset_records as evaluation_records
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.evaluation.dataset_records import RecordPosition
from mlcore.responses.evaluation import datasets as responses
from mlcore.wire.json_text import parse_json_text

QUERY_RECORDS: Final = 1000
"""Largest number of records that one database query reads."""


def upsert_records(message: m.UpsertDatasetRecords, request: Request) -> dict[str, Any]:
    """Adds records to a dataset, and merges those whose inputs equal those of a stored record or of
    another record of the request. Returns how many were inserted and how many merged. Writes
    nothing if a record, or the dataset with the fields of the records, is too large to be stored.
    """
    records = _parse_records(message.records)
    dataset = _find(message.dataset_id, request)
    if dataset is None:
        if not records:
            return {"inserted_count": 0, "updated_count": 0}
        raise _missing(message.dataset_id)
    now = ids.now_ms()

    def described(dataset: EvaluationDataset, profile: str | None) -> EvaluationDataset:
        return dataset._replace(
            last_update_time=now,
            last_updated_by=last_tagged_user(records),
            digest=digest(dataset.name, now),
            schema=extend_schema(dataset.schema, records) if records else dataset.schema,
            profile=profile,
        )

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        count = evaluation_records.count(dataset)
        return described(dataset, profile_text(count, dataset.profile))

    evaluation_datasets.check_size(described(dataset, profile_text(len(records), dataset.profile)))
    inserted = _upsert(dataset, records, now)
    if update(dataset.dataset_id, request, change) is None:
        # The dataset was deleted meanwhile, perhaps before these records were written.
        evaluation_records.delete(dataset, sorted(inserted))
        raise _missing(dataset.dataset_id)
    return {"inserted_count": len(inserted), "updated_count": len(records) - len(inserted)}


def get_records(message: m.GetDatasetRecords, request: Request) -> dict[str, Any]:
    """Returns a page of a dataset's records, oldest first. A page may be shorter than
    ``max_results`` to keep the response within its size limit."""
    limit = message.max_results or 1000
    if limit < 0:
        raise errors.InvalidParameterValue(
            f"Invalid value {limit} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    dataset_id = message.dataset_id
    after = _parse_token(message.page_token, dataset_id)
    dataset = _find(dataset_id, request)
    if dataset is None:
        return {"records": "[]"}
    texts: list[str] = []
    weight, last, more = 0, after, False
    for record in evaluation_records.in_order(dataset, after, min(limit + 1, QUERY_RECORDS)):
        text = json.dumps(responses.record(record))
        weight += 2 * len(text)
        if texts and (len(texts) == limit or weight > paging.MAX_RESPONSE_BYTES):
            more = True
            break
        texts.append(text)
        last = evaluation_records.position_of(record)
    body = {"records": f"[{', '.join(texts)}]"}
    if more and last is not None:
        body["next_page_token"] = paging.token(list(last), dataset_id)
    return body


def delete_records(message: m.DeleteDatasetRecords, request: Request) -> dict[str, Any]:
    stored = _find(message.dataset_id, request)
    if stored is None:
        return {"deleted_count": 0}
    wanted = list(dict.fromkeys(filter(None, message.dataset_record_ids)))
    records = evaluation_records.find_many(stored, wanted)
    evaluation_records.delete(stored, list(records))

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        count = evaluation_records.count(dataset)
        return dataset._replace(profile=profile_text(count, dataset.profile))

    update(stored.dataset_id, request, change)
    return {"deleted_count": len(records)}


def _find(dataset_id: str, request: Request) -> EvaluationDataset | None:
    """Returns a dataset; None if there is none. With workspaces, a missing dataset is an error, as
    on MLflow's server, because it may be in another workspace.

    Raises:
        ResourceDoesNotExist: workspaces are on, and the request's has no such dataset.
    """
    dataset = evaluation_datasets.find(request.workspace, dataset_id)
    if dataset is None and workspaces_enabled():
        raise errors.ResourceDoesNotExist(f"Dataset '{dataset_id}' not found.")
    return dataset


def _parse_records(text: str) -> list[dict[str, Any]]:
    """Parses the JSON list of records; an empty JSON object counts as an empty list. Raises
    InvalidParameterValue."""
    try:
        records = parse_json_text(text, lone_surrogates=True)
    except ValueError:
        records = None
    if records == {}:
        return []
    if not isinstance(records, list):
        raise errors.InvalidParameterValue("Parameter 'records' must be the JSON text of a list.")
    return [check_record(record) for record in records]


def _upsert(dataset: EvaluationDataset, records: list[dict[str, Any]], now: int) -> set[str]:
    """Writes the records. Returns the ids of those that were inserted; the others were merged into
    another."""
    by_id: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for position, given in enumerate(records):
        by_id.setdefault(record_id(dataset.dataset_id, given), []).append((position, given))
    inserted: set[str] = set()
    pending = list(by_id)

    def attempt() -> None:
        nonlocal pending
        stored = evaluation_records.find_many(dataset, pending)
        wanted: list[EvaluationRecord] = []
        for key in pending:
            record = stored.get(key)
            inserted.discard(key)
            for position, given in by_id[key]:
                if record is None:
                    record = new_record(dataset.dataset_id, given, now, position)
                    inserted.add(key)
                else:
                    record = merge_record(record, given, now)
            if record is not None:
                wanted.append(record)
        pending = list(evaluation_records.write(wanted))
        if pending:
            raise WriteConflict

    retry_on_conflict("dataset", attempt)
    return inserted


def _missing(dataset_id: str) -> errors.BadRequest:
    return errors.BadRequest(f"Evaluation dataset with id '{dataset_id}' not found")


def _parse_token(token: str, dataset_id: str) -> RecordPosition | None:
    position = paging.position_of(token, dataset_id)
    if position is None:
        return None
    match position:
        case [int(created_time), int(number), str(last_id)] if max(created_time, number) < 2**63:
            return created_time, number, last_id
    raise errors.InvalidParameterValue("Invalid page token")
