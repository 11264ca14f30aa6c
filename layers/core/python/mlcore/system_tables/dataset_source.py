"""Reads evaluation datasets and their records from the table, strongly consistently, for the system
tables. Writes nothing.

A dataset is found by its workspace and id. If it was moved to another workspace, a landing object
or its published row names the former one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.models.evaluation import EvaluationDataset, EvaluationRecord
from mlcore.repos.evaluation import dataset_records, datasets
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.dataset_rows import DatasetRow, RecordRow, dataset_row, record_row
from mlcore.system_tables.entity_kinds import DATASETS, EntityRef
from mlcore.system_tables.run_source import in_parts


def find_datasets(
    refs: Collection[EntityRef], published: Mapping[str, str]
) -> Iterator[DatasetRow]:
    """Yields the rows of ``evaluation_datasets`` for those of the given datasets that exist, each
    once. A dataset is looked for in the workspaces that its references and its published row name,
    and in the default workspace, to which datasets are moved. Sends at most three BatchGetItem per
    hundred datasets, more if references name several workspaces of a dataset.

    Args:
        refs: (dataset id, workspace).
        published: by dataset id: the workspace in the dataset's row that is published already.
    """
    wanted: dict[str, set[str]] = {}
    for dataset_id, workspace in refs:
        known = published.get(dataset_id, DEFAULT_WORKSPACE)
        wanted.setdefault(dataset_id, set()).update((workspace, known, DEFAULT_WORKSPACE))
    for part in in_parts(wanted):
        pairs = [(dataset, workspace) for dataset in part for workspace in sorted(wanted[dataset])]
        items = table.batch_get(
            [keys.evaluation_dataset(workspace, dataset) for dataset, workspace in pairs]
        )
        newest: dict[str, tuple[int, DatasetRow]] = {}
        for (dataset_id, workspace), raw in zip(pairs, items, strict=True):
            if raw is None:
                continue
            item = EvaluationDataset.of(raw)
            # During a move the dataset is in both workspaces; the newer item counts.
            if dataset_id not in newest or newest[dataset_id][0] < item.version:
                newest[dataset_id] = (item.version, _dataset(workspace, raw))
        yield from (row for _, row in newest.values())


def find_records(refs: Collection[EntityRef]) -> Iterator[RecordRow]:
    """Yields, for the SQL tables, the rows of those of the given records of evaluation datasets
    that exist. Sends one BatchGetItem per hundred records.

    Args:
        refs: (dataset id, record id).
    """
    for part in in_parts(refs):
        items = table.batch_get([keys.evaluation_record(*ref) for ref in part])
        for (dataset_id, _), raw in zip(part, items, strict=True):
            if raw is not None:
                yield _record(dataset_id, raw)


def records_of(ref: EntityRef) -> Iterator[RecordRow]:
    """Yields the system table rows of all records of an evaluation dataset; one Query per MB."""
    dataset_id = ref[0]
    pk = keys.evaluation_record(dataset_id, "").pk
    for raw in table.query_all(pk, prefix=keys.evaluation_record_prefix()):
        yield _record(dataset_id, raw)


def dataset_refs() -> Iterator[EntityRef]:
    """Yields the references (dataset id, workspace) of all evaluation datasets; one Query per
    workspace and MB, after those for the names of the workspaces."""
    for workspace in workspaces.names():
        pk = keys.evaluation_dataset(workspace, "").pk
        for raw in table.query_all(pk, prefix=keys.evaluation_dataset_prefix()):
            yield DATASETS.ref_of(raw)


def _dataset(workspace: str, raw: Raw) -> DatasetRow:
    return dataset_row(datasets.of_item(workspace, raw), EvaluationDataset.of(raw).updated_at or 0)


def _record(dataset_id: str, raw: Raw) -> RecordRow:
    return record_row(
        dataset_records.of_item(dataset_id, raw), EvaluationRecord.of(raw).updated_at or 0
    )
