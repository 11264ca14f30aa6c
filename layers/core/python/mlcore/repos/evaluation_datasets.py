"""Evaluation datasets: one item each, all of a workspace in one partition, read strongly
consistently."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, number
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, TransactionFailed, table
from mlcore.evaluation.dataset import EvaluationDataset
from mlcore.ids import new_ulid, now_ms
from mlcore.models.evaluation import EvaluationDataset as DatasetItem
from mlcore.repos import workspaces


class Conflict(Exception):
    """The dataset changed, or went, after it was read."""


def create(dataset: EvaluationDataset) -> None:
    """A dataset whose id is new; it makes its workspace one that is not empty."""
    entered = workspaces.entering(dataset.workspace)
    if not entered:
        table.put(_item(dataset))
        return
    try:
        table.transact([Put(_item(dataset)), *entered], new_ulid())
    except TransactionFailed as failed:
        raise workspaces.missing(dataset.workspace) from failed


def find(workspace: str, dataset_id: str) -> EvaluationDataset | None:
    """One consistent GetItem; a dataset of another workspace is not found."""
    item = table.get(keys.evaluation_dataset(workspace, dataset_id))
    return None if item is None else _dataset(workspace, item)


def of_workspace(workspace: str) -> list[EvaluationDataset]:
    """All of a workspace; one Query for each MB."""
    pk = keys.evaluation_dataset(workspace, "").pk
    found = table.query_all(pk, prefix=keys.evaluation_dataset_prefix())
    return [_dataset(workspace, item) for item in found]


def replace(dataset: EvaluationDataset) -> None:
    """Writes a dataset that was read and then changed. Raises Conflict."""
    unchanged = Condition()
    unchanged.require_equal("version", number(dataset.version))
    try:
        table.put(_item(dataset), unchanged)
    except ConditionFailed as failed:
        raise Conflict from failed


def delete(dataset: EvaluationDataset) -> None:
    """Without its records; may be repeated."""
    table.delete(keys.evaluation_dataset(dataset.workspace, dataset.dataset_id))


def move(dataset: EvaluationDataset, workspace: str) -> None:
    """To another workspace; its records are found by its id. May be repeated."""
    table.put(_item(dataset._replace(workspace=workspace)))
    delete(dataset)


def _item(dataset: EvaluationDataset) -> Raw:
    place = keys.evaluation_dataset(dataset.workspace, dataset.dataset_id)
    item = DatasetItem(
        PK=place.pk,
        SK=place.sk,
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
        experiment_ids=" ".join(dataset.experiment_ids) or None,
        version=dataset.version + 1,
        updated_at=now_ms(),
    )
    return dict(item.serialize())


def _dataset(workspace: str, item: Raw) -> EvaluationDataset:
    def text(attribute: str) -> str | None:
        return item[attribute]["S"] if attribute in item else None

    return EvaluationDataset(
        dataset_id=item["dataset_id"]["S"],
        workspace=workspace,
        name=item["name"]["S"],
        digest=item["digest"]["S"],
        tags={key: value["S"] for key, value in item["tags"]["M"].items()},
        schema=text("schema"),
        profile=text("profile"),
        created_time=int(item["created_time"]["N"]),
        last_update_time=int(item["last_update_time"]["N"]),
        created_by=text("created_by"),
        last_updated_by=text("last_updated_by"),
        experiment_ids=tuple((text("experiment_ids") or "").split()),
        version=int(item["version"]["N"]),
    )
