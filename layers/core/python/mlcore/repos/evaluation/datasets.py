"""Evaluation datasets: one item each, all of a workspace in one partition. All reads are strongly
consistent."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from mlcore.db import item_size, keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, TransactionFailed, table
from mlcore.entities.evaluation.datasets import EvaluationDataset
from mlcore.ids import new_ulid, now_ms
from mlcore.models.evaluation import EvaluationDataset as DatasetItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.workspaces import guarded_writes

_NO_WORD: Final = re.compile(r"[\s%]")


def create(dataset: EvaluationDataset) -> None:
    """Writes a new evaluation dataset. Its id must be new: a dataset with the same id would be
    overwritten. Raises ResourceDoesNotExist if the workspace was deleted."""
    guarded_writes.write([Put(_item(dataset))], creates_in=dataset.workspace)


def find(workspace: str, dataset_id: str) -> EvaluationDataset | None:
    """Returns an evaluation dataset; None if the workspace has none with this id. One consistent
    GetItem."""
    item = table.get(keys.evaluation_dataset(workspace, dataset_id))
    return None if item is None else of_item(workspace, item)


def of_workspace(workspace: str) -> list[EvaluationDataset]:
    """Returns all evaluation datasets of a workspace; one Query per MB."""
    pk = keys.evaluation_dataset(workspace, "").pk
    items = table.query_all(pk, prefix=keys.evaluation_dataset_prefix())
    return [of_item(workspace, item) for item in items]


def replace(dataset: EvaluationDataset) -> None:
    """Writes a changed evaluation dataset. Raises WriteConflict if it was written or deleted since
    it was read."""
    unchanged = ConditionExpression()
    unchanged.require_equal(DatasetItem.version, dataset.version)
    try:
        table.put(_item(dataset), unchanged)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def check_size(dataset: EvaluationDataset) -> None:
    """Raises ItemTooLarge if the evaluation dataset could not be written."""
    item_size.check(_item(dataset))


def delete(dataset: EvaluationDataset) -> None:
    """Deletes an evaluation dataset, but not its records. Idempotent."""
    table.delete(keys.evaluation_dataset(dataset.workspace, dataset.dataset_id))


def move(dataset: EvaluationDataset, workspace: str) -> None:
    """Moves an evaluation dataset to another workspace; its records are keyed by its id alone.
    Raises WriteConflict if the dataset was written, moved or deleted since it was read."""
    unchanged = ConditionExpression()
    unchanged.require_equal(DatasetItem.version, dataset.version)
    deletion = Delete(keys.evaluation_dataset(dataset.workspace, dataset.dataset_id), unchanged)
    try:
        table.transact([Put(_item(dataset._replace(workspace=workspace))), deletion], new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed


def _item(dataset: EvaluationDataset) -> Raw:
    key = keys.evaluation_dataset(dataset.workspace, dataset.dataset_id)
    item = DatasetItem(
        PK=key.pk,
        SK=key.sk,
        dataset_id=dataset.dataset_id,
        name=dataset.name,
        digest=dataset.digest,
        tags=dataset.tags,
        schema=dataset.schema,
        profile=dataset.profile,
        created_time=dataset.created_time,
        last_update_time=dataset.last_update_time,
        created_by=dataset.created_by,
        last_updated_by=dataset.last_updated_by,
        experiment_ids=" ".join(map(_word, dataset.experiment_ids)) or None,
        version=dataset.version + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _word(experiment_id: str) -> str:
    """Returns an experiment's id as a word. Whoever creates a dataset may name any id: one such as
    "1 2" must not become two ids, whose experiments the caller was not asked for."""
    return _NO_WORD.sub(lambda match: quote(match[0]), experiment_id)


def of_item(workspace: str, raw: Raw) -> EvaluationDataset:
    """Returns the evaluation dataset of a workspace that an item holds."""
    item = DatasetItem.of(raw)
    return EvaluationDataset(
        dataset_id=item.dataset_id,
        workspace=workspace,
        name=item.name,
        digest=item.digest,
        tags=dict(item.tags),
        schema=item.schema,
        profile=item.profile,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        created_by=item.created_by,
        last_updated_by=item.last_updated_by,
        experiment_ids=tuple(map(unquote, (item.experiment_ids or "").split())),
        version=item.version,
    )
