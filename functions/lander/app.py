"""The lander: puts what the table's stream tells of experiments, runs and points where the
publisher of the system tables finds it; one object for a batch, named by the batch.

Points are taken from the batches in the stream, for those are packed later, and not where a request
was refused after all; of all else it is enough to know that it changed. A batch that cannot be put
fails as a whole and is delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in
from mlcore.models.base import Item
from mlcore.repos.runs import history
from mlcore.system_tables import landing
from mlcore.system_tables.landing import Changed
from mlcore.system_tables.rows import PointRow, point_row
from mlcore.system_tables.source import distinct

Record = Mapping[str, Any]

_BATCH: Final = "run_metric_batch"
_RUN: Final = frozenset(("run", "run_metric", "run_param", "run_tag"))


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """A DynamoDB stream event in; nothing failed out."""
    records: Sequence[Record] = event["Records"]
    land(records, shard_of(records))
    return {"batchItemFailures": []}


def shard_of(records: Sequence[Record]) -> str:
    """A word for where a batch came from. Lambda does not tell the shard; no two shards have a
    sequence number in common, and those of one day begin alike."""
    first: str = records[0]["dynamodb"]["SequenceNumber"]
    return first.zfill(40)[:24]


def land(records: Sequence[Record], shard: str) -> None:
    """Puts one object, or none if the records tell nothing of the tables."""
    batches: dict[Key, Raw] = {}
    experiments: set[str] = set()
    runs: set[tuple[str, str]] = set()
    for record in records:
        change = record["dynamodb"]
        image: Raw = change.get("NewImage") or change.get("OldImage") or {}
        kind = Item.of(image).type if image else ""
        place = key_in(change["Keys"])
        if kind == "experiment":
            experiments.add(keys.experiment_id_of(place.pk))
        elif kind in _RUN:
            runs.add(keys.run_of(place))
        elif kind == _BATCH and "NewImage" in change:
            if history.is_refused(image):
                batches.pop(place, None)
            else:
                batches.setdefault(place, image)
    points = [row for place, image in batches.items() for row in _points(place, image)]
    if points or experiments or runs:
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        content = landing.encode(distinct(points), Changed(experiments, runs))
        landing.put(landing.name_of(shard, numbers[0], numbers[-1]), content)


def _points(place: Key, image: Raw) -> Iterator[PointRow]:
    run = keys.run_of(place)
    inserted = Item.of(image).updated_at or 0
    for points in history.batch_points(image).values():
        for point in points:
            yield point_row(*run, point, inserted)
