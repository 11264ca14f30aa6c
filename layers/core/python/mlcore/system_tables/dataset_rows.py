"""Converts stored evaluation datasets and their records to rows of ``evaluation_datasets`` and
``evaluation_dataset_records``, without reading anything.

Times are milliseconds since 1970 here, and microseconds in the tables. Maps are sorted by key, so
that equal maps compare equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord
from mlcore.system_tables.run_rows import within
from mlcore.wire.json_text import storable


class DatasetRow(NamedTuple):
    """A row of ``evaluation_datasets``, without the column of the AWS account. ``schema`` and
    ``profile`` are JSON."""

    dataset_id: str
    workspace_id: str
    name: str
    digest: str
    create_time: int
    last_update_time: int
    update_time: int
    created_by: str | None
    last_updated_by: str | None
    experiment_ids: list[str]
    schema: str | None
    profile: str | None
    tags: dict[str, str]


class RecordRow(NamedTuple):
    """A row of ``evaluation_dataset_records``, without the column of the AWS account and without
    the workspace. ``inputs``, ``outputs``, ``expectations`` and ``source`` are JSON."""

    dataset_id: str
    record_id: str
    create_time: int
    last_update_time: int
    update_time: int
    created_by: str | None
    last_updated_by: str | None
    inputs: str
    outputs: str | None
    expectations: str | None
    source_type: str | None
    source_id: str | None
    source: str | None
    tags: dict[str, str]


def dataset_row(dataset: EvaluationDataset, updated_ms: int) -> DatasetRow:
    """Converts an evaluation dataset to its system table's row.

    Args:
        updated_ms: when the dataset's item was last written.
    """
    return DatasetRow(
        dataset_id=dataset.dataset_id,
        workspace_id=dataset.workspace,
        name=dataset.name,
        digest=dataset.digest,
        create_time=within(dataset.created_time),
        last_update_time=within(dataset.last_update_time),
        update_time=within(updated_ms),
        created_by=dataset.created_by,
        last_updated_by=dataset.last_updated_by,
        experiment_ids=list(dataset.experiment_ids),
        schema=dataset.schema,
        profile=dataset.profile,
        tags=dict(sorted(dataset.tags.items())),
    )


def record_row(record: EvaluationRecord, updated_ms: int) -> RecordRow:
    """Converts a record of an evaluation dataset to its row in the system tables.

    Args:
        updated_ms: when the record's item was last written.
    """
    content = record.content
    source = content.get("source")
    return RecordRow(
        dataset_id=record.dataset_id,
        record_id=record.record_id,
        create_time=within(record.created_time),
        last_update_time=within(content.get("last_update_time", record.created_time)),
        update_time=within(updated_ms),
        created_by=_name(content.get("created_by")),
        last_updated_by=_name(content.get("last_updated_by")),
        inputs=json_text(content.get("inputs", {})),
        outputs=_json_or_none(content.get("outputs")),
        expectations=_json_or_none(content.get("expectations")),
        source_type=source["source_type"] if source else None,
        source_id=_name(content.get("source_id")),
        source=_json_or_none(source["source_data"] if source else None),
        tags=_texts(content.get("tags") or {}),
    )


def json_text(value: Any) -> str:
    """Returns the JSON text of a value, with ``?`` for unpaired surrogates, which no file can
    hold."""
    return storable(json.dumps(value, ensure_ascii=False))


def _json_or_none(value: Any) -> str | None:
    return None if value is None else json_text(value)


def _name(value: Any) -> str | None:
    """Returns a string unchanged and any other value as JSON, since clients may send any value;
    None for null."""
    if value is None:
        return None
    return storable(value) if isinstance(value, str) else json_text(value)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    texts = {storable(key): _name(value) or "" for key, value in values.items()}
    return dict(sorted(texts.items()))
