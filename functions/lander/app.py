"""The lander: writes the changes in the table's stream to objects that the publisher of the system
tables reads. Each stream batch becomes an object about runs, one about traces and one about other
entities, each only if something of its kind changed. Their names follow from the batch.

Metric points are copied from the stream, because the table's metric batches are packed later.
Points of a refused request are left out if the same stream batch shows the refusal; a later batch
that shows it names them, so that the publisher removes them. Of experiments, runs, traces and other
entities the ids of the changed ones are written (of traces also times), not their content. A stream
batch whose object cannot be written fails as a whole and is delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item
from mlcore.models.base import Item
from mlcore.repos.runs.history import metric_history
from mlcore.system_tables import entity_kinds, entity_landing, landing_objects, trace_landing
from mlcore.system_tables.landing_objects import Changed
from mlcore.system_tables.run_rows import PointRow, point_row
from mlcore.system_tables.run_source import distinct

Record = Mapping[str, Any]

_METRIC_BATCH: Final = "run_metric_batch"
_RUN_TYPES: Final = frozenset(("run", "run_metric", "run_param", "run_tag"))


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Writes the changes in a DynamoDB stream event to objects in S3 (:func:`land`). Reports no
    failed records: an error fails the whole batch."""
    records: Sequence[Record] = event["Records"]
    land(records, shard_of(records))
    return {"batchItemFailures": []}


def shard_of(records: Sequence[Record]) -> str:
    """Returns a text that identifies the shard of the DynamoDB stream from which ``records`` come:
    the leading digits of their first sequence number. The text replaces the shard id, which Lambda
    does not pass. No two shards share a sequence number, and the sequence numbers of one shard
    begin alike for a day."""
    first: str = records[0]["dynamodb"]["SequenceNumber"]
    return first.zfill(40)[:24]


def land(records: Sequence[Record], shard: str) -> None:
    """Writes the changes in these stream records as landing objects, for the publisher: one about
    runs, one about traces and one about other entities, each only if there are such changes.

    Args:
        shard: the stream's shard, from :func:`shard_of`; part of the names of the objects.
    """
    traces = trace_landing.ChangedTraces()
    entities = entity_landing.ChangedEntities()
    batches: dict[Key, dict[int, Raw]] = {}
    """By key and time: a batch may be written again after a rewind removed its points."""
    experiments: set[str] = set()
    runs: set[tuple[str, str]] = set()
    refused: list[PointRow] = []
    for record in records:
        change = record["dynamodb"]
        image: Raw = change.get("NewImage") or change.get("OldImage") or {}
        kind = Item.of(image).type if image else ""
        key = key_of_item(change["Keys"])
        if kind == "experiment":
            experiments.add(keys.experiment_id_of(key.pk))
        elif kind == trace_landing.TRACE:
            traces.add_record(record)
        elif kind == trace_landing.REMOVAL:
            # That the item expires later changes nothing.
            if "NewImage" in change:
                traces.add_removal(image)
        elif kind in entity_kinds.BY_ITEM_TYPE:
            entities.add_record(record, kind)
        elif kind in _RUN_TYPES:
            runs.add(keys.run_of(key))
        elif kind == _METRIC_BATCH and "NewImage" in change:
            if metric_history.is_refused(image):
                if batches.pop(key, None) is None:
                    refused += _points(key, change.get("OldImage") or {})
            else:
                time = Item.of(image).updated_at or 0
                batches.setdefault(key, {}).setdefault(time, image)
    points = [
        row
        for key, images in batches.items()
        for image in images.values()
        for row in _points(key, image)
    ]
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    name = landing_objects.name_of(shard, numbers[0], numbers[-1])
    if points or experiments or runs or refused:
        changed = Changed(experiments, runs)
        landing_objects.put(name, landing_objects.encode(distinct(points), changed, refused))
    trace_landing.put(name, traces)
    entity_landing.put(name, entities)


def _points(key: Key, image: Raw) -> Iterator[PointRow]:
    run = keys.run_of(key)
    inserted = Item.of(image).updated_at or 0
    for points in metric_history.batch_points(image).values():
        for point in points:
            yield point_row(*run, point, inserted)
