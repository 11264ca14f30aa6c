"""Records (rows) of evaluation datasets: a partition for each dataset; LSI2 has them in the order
of their creation."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Final

from mlcore.db import failures, item_size, keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.evaluation import EvaluationRecord as RecordItem
from mlcore.repos.evaluation import datasets
from mlcore.repos.item_deletion import delete_items

MAX_JSON_BYTES: Final = 16_000_000
"""Limit of a record's content as JSON, more than one request can send. It is compressed in its
item, so without this limit requests that are merged into a record could make one of which the JSON
fits into the memory of no reader, such as the publisher of the system tables."""

RecordPosition = tuple[int, int, str]
"""Position of a record in its dataset: (creation time, number, id)."""


def find_many(dataset: EvaluationDataset, record_ids: Sequence[str]) -> dict[str, EvaluationRecord]:
    """Returns those records of an evaluation dataset that have one of the ids, by id; one
    BatchGetItem per hundred."""
    items = table.batch_get(
        [keys.evaluation_record(dataset.dataset_id, record_id) for record_id in record_ids]
    )
    records = [of_item(dataset.dataset_id, item) for item in items if item is not None]
    return {record.record_id: record for record in records}


def write(records: Sequence[EvaluationRecord]) -> set[str]:
    """Writes records of evaluation datasets, each unless it was changed since it was read. Returns
    the ids of the records that were changed and so not written. Writes none if one is too large
    (ItemTooLarge)."""
    items = list(map(_item, records))
    for item in items:
        item_size.check(item)
    writes = map(partial, repeat(_write), records, items)
    conflicts = table.parallel(list(writes))
    return {record_id for record_id in conflicts if record_id is not None}


def in_order(
    dataset: EvaluationDataset, after: RecordPosition | None, most: int
) -> Iterator[EvaluationRecord]:
    """Yields an evaluation dataset's records, oldest first.

    Args:
        after: the position after which to start; None for the first record.
        most: how many records each Query reads.
    """
    pk = keys.evaluation_record(dataset.dataset_id, "").pk
    between = keys.lsi2_evaluation_records_after(*(after or (0, -1, "")))
    for item in table.query_all(pk, index="LSI2", between=between, limit=most):
        yield of_item(dataset.dataset_id, item)


def position_of(record: EvaluationRecord) -> RecordPosition:
    return record.created_time, record.number, record.record_id


def count(dataset: EvaluationDataset) -> int:
    """Counts an evaluation dataset's records by their entries in LSI2 alone."""
    pk = keys.evaluation_record(dataset.dataset_id, "").pk
    return sum(1 for _ in table.query_all(pk, index="LSI2", attributes=[RecordItem.SK]))


def delete(dataset: EvaluationDataset, record_ids: Sequence[str]) -> None:
    table.batch_write(
        deletes=[keys.evaluation_record(dataset.dataset_id, record_id) for record_id in record_ids]
    )


def delete_with_dataset(dataset: EvaluationDataset) -> None:
    """Deletes an evaluation dataset with its records. Idempotent; an interrupted call can be
    repeated.

    The records are deleted before and after their dataset: another request may add some in between.
    One that adds records after this call finds that the dataset is gone, and deletes them itself.
    """
    _delete_all(dataset)
    datasets.delete(dataset)
    _delete_all(dataset)


def _delete_all(dataset: EvaluationDataset) -> None:
    pk = keys.evaluation_record(dataset.dataset_id, "").pk
    prefix = keys.evaluation_record_prefix()
    delete_items(table.query_all(pk, prefix=prefix, attributes=KEY))


def _item(record: EvaluationRecord) -> Raw:
    key = keys.evaluation_record(record.dataset_id, record.record_id)
    text = json.dumps(record.content, separators=(",", ":"))
    if len(text) > MAX_JSON_BYTES:
        raise failures.item_too_large()
    item = RecordItem(
        PK=key.pk,
        SK=key.sk,
        lsi2sk=keys.lsi2_evaluation_record(record.created_time, record.number, record.record_id),
        record_id=record.record_id,
        created_time=record.created_time,
        number=record.number,
        data=zlib.compress(text.encode()),
        version=record.version + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _write(record: EvaluationRecord, item: Raw) -> str | None:
    unchanged = ConditionExpression()
    if record.version:
        unchanged.require_equal(RecordItem.version, record.version)
    else:
        unchanged.require_absent(RecordItem.PK)
    try:
        table.put(item, unchanged)
    except ConditionFailed:
        return record.record_id
    return None


def of_item(dataset_id: str, raw: Raw) -> EvaluationRecord:
    """Returns the record of an evaluation dataset that an item holds."""
    item = RecordItem.of(raw)
    return EvaluationRecord(
        record_id=item.record_id,
        dataset_id=dataset_id,
        created_time=item.created_time,
        number=item.number,
        content=json.loads(zlib.decompress(item.data)),
        version=item.version,
    )
