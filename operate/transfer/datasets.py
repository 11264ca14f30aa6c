"""Transfers evaluation datasets with their records from an MLflow server. Datasets keep their ids;
records get new ids, which derive from their inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord
from mlcore.limits.evaluation.dataset_records import record_id
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import dataset_records as evaluation_records
from mlcore.repos.evaluation import datasets as evaluation_datasets
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import API_3
from operate.transfer.transfer_item import Content, TransferItem

_IN_FILES: Final = "FEATURE_DISABLED"
_PAGE: Final = 100
_RECORDS: Final = 1000
_IDENTITY: Final = ("dataset_record_id", "dataset_id", "created_time")
"""Fields of a record that are not compared."""
_ALWAYS: Final[Json] = {"inputs": {}, "tags": {}}
"""Fields that every record in the table has."""


def listed(server: Server) -> list[Json] | None:
    """Returns the source server's evaluation datasets without their records; None if the server
    does not support them (before 3.4, or with its data in files)."""
    try:
        return list(server.pages("POST", f"{API_3}/datasets/search", "datasets", max_results=_PAGE))
    except SourceFailed as failed:
        if failed.unknown or failed.code == _IN_FILES:
            return None
        raise


def item(server: Server, fields: Json, target_of: Callable[[str], str]) -> TransferItem:
    """Returns the transfer item that copies one evaluation dataset with its records from another
    MLflow server.

    Args:
        fields: the dataset as that server returned it.
        target_of: returns this product's id of an experiment, given that server's id.
    """
    dataset_id, workspace = fields["dataset_id"], server.workspace
    outlines: list[Content] = []

    def outline() -> Content:
        if not outlines:
            experiment_ids = server.get(f"{API_3}/datasets/{dataset_id}/experiment-ids")
            mapped = map(target_of, experiment_ids.get("experiment_ids", ()))
            outlines.append(_content(_dataset(fields, workspace, tuple(sorted(set(mapped))))))
        return outlines[0]

    def want() -> Content:
        return {**outline(), "records": _source_records(server, dataset_id)}

    def have() -> Content | None:
        existing = evaluation_datasets.find(workspace, dataset_id)
        if existing is None:
            return None
        kept = evaluation_records.in_order(existing, None, _RECORDS)
        return {
            **_content(existing),
            "records": {record.record_id: _plain(record) for record in kept},
        }

    def write(want: Content, existing: Content | None) -> None:
        """Writes the records first and the dataset last, so that a dataset that exists is
        complete."""
        dataset = _dataset(fields, workspace, tuple(want["experiment_ids"]))
        _write_records(dataset, want["records"], (existing or {}).get("records", {}))
        if existing is None:
            evaluation_datasets.create(dataset)
        else:
            retry_on_conflict("dataset", lambda: _replace(dataset))

    return TransferItem(
        "evaluation dataset",
        dataset_id,
        want,
        have,
        write,
        outline=outline,
        exists=lambda: evaluation_datasets.find(workspace, dataset_id) is not None,
    )


def _dataset(fields: Json, workspace: str, experiment_ids: tuple[str, ...]) -> EvaluationDataset:
    tags: Json = json.loads(fields.get("tags") or "{}")
    return EvaluationDataset(
        dataset_id=fields["dataset_id"],
        workspace=workspace,
        name=fields["name"],
        digest=fields.get("digest", ""),
        tags={key: str(value) for key, value in tags.items() if value is not None},
        schema=fields.get("schema"),
        profile=fields.get("profile"),
        created_time=int(fields["created_time"]),
        last_update_time=int(fields["last_update_time"]),
        created_by=fields.get("created_by"),
        last_updated_by=fields.get("last_updated_by"),
        experiment_ids=experiment_ids,
    )


def _content(dataset: EvaluationDataset) -> Content:
    fields: dict[str, Any] = dataset._asdict()
    del fields["dataset_id"], fields["workspace"], fields["version"]
    return {**fields, "experiment_ids": sorted(dataset.experiment_ids)}


def _source_records(server: Server, dataset_id: str) -> dict[str, Any]:
    """Returns the source server's records by their id in the table, in the server's order. The
    server returns the records of a page as a string that contains a JSON list."""
    records: dict[str, Any] = {}
    token = None
    while True:
        page = server.get(
            f"{API_3}/datasets/{dataset_id}/records",
            max_results=_RECORDS,
            **({"page_token": token} if token else {}),
        )
        for record in json.loads(page.get("records") or "[]"):
            content = {
                name: value
                for name, value in record.items()
                if name not in _IDENTITY and value is not None
            }
            records[record_id(dataset_id, record)] = {
                "created_time": int(record["created_time"]),
                "content": {**_ALWAYS, **content},
            }
        token = page.get("next_page_token")
        if not token:
            return records


def _plain(record: EvaluationRecord) -> Json:
    return {"created_time": record.created_time, "content": record.content}


def _write_records(dataset: EvaluationDataset, want: Json, stored: Json) -> None:
    """Writes the records. Raises ResourceConflict if another client changes them at the target."""
    differing = {name: number for number, name in enumerate(want) if stored.get(name) != want[name]}
    there = evaluation_records.find_many(dataset, list(differing))
    conflicts = evaluation_records.write(
        [
            EvaluationRecord(
                name,
                dataset.dataset_id,
                want[name]["created_time"],
                number,
                want[name]["content"],
                version=there[name].version if name in there else 0,
            )
            for name, number in differing.items()
        ]
    )
    if conflicts:
        raise errors.ResourceConflict("Somebody changed its records at the target: import again.")


def _replace(dataset: EvaluationDataset) -> None:
    current = evaluation_datasets.find(dataset.workspace, dataset.dataset_id)
    if current is None:
        raise errors.ResourceConflict("Somebody deleted it at the target meanwhile: import again.")
    evaluation_datasets.replace(dataset._replace(version=current.version))
