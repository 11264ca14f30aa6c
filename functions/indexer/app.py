"""The indexer: follows the table's stream and keeps the items that are derived from source items.

The records of a batch are handled together by what they are about: what is written follows from the
sources as they are, not from the order of the records. The first record that could not be handled
is reported, and Lambda delivers the batch again from there. Where that is the very first, the
function fails as a whole: for the stream it is the same, and it is counted among its errors. All
writes may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from indexer import (
    archived,
    experiment_items,
    expiry,
    file_removals,
    history_items,
    quiet_runs,
    run_items,
    trace_items,
    unfinished,
    webhook_events,
)
from mlcore import garbage
from mlcore.db import keys
from mlcore.db.attributes import text_of
from mlcore.db.expression import Raw
from mlcore.models.base import Item
from mlcore.observability import logger

Record = Mapping[str, Any]
Projector = Callable[[Sequence[Record]], None]

_PROJECTORS: Mapping[str, tuple[Projector, ...]] = {
    keys.RUN.name: (unfinished.project, run_items.project),
    keys.RUN_METRIC.name: (run_items.project,),
    keys.RUN_PARAM.name: (run_items.project,),
    keys.RUN_INPUT.name: (run_items.project,),
    keys.RUN_METRIC_BATCH.name: (unfinished.project, history_items.project),
    keys.EXPERIMENT.name: (experiment_items.project,),
    keys.TRACE.name: (trace_items.project,),
    keys.TRACE_SPANS.name: (trace_items.project,),
    keys.TRACE_SPANS_PACK.name: (trace_items.project,),
}

EXPIRING = (
    *(keys.RUN.name, keys.RUN_METRIC_FILE.name, keys.EXPERIMENT.name),
    *(keys.TRACE.name, keys.LOGGED_MODEL.name),
)
"""Types of items that expire or are removed with what belongs to them."""

ARCHIVING = (keys.REGISTERED_MODEL.name, keys.MODEL_VERSION.name, keys.MODEL_END.name)
"""Types of items that tell what is archived, and when that expires."""

ANNOUNCING = (keys.REGISTERED_MODEL.name, keys.MODEL_VERSION.name)
"""Types of items whose writes webhooks may want to hear of."""


garbage.collect_seldom()


class NothingIndexed(Exception):
    """The batch's first record could not be handled; the log says why."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """A DynamoDB stream event in; the sequence number of the first record that failed out, if one
    did. A scheduled event tells of no record: quiet runs are looked for then.

    Raises:
        NothingIndexed: it is the first of all. Lambda halves the batch, so that one record that
            always fails takes no other with it.
    """
    if "Records" not in event:
        quiet_runs.sweep()
        return {}
    records: Sequence[Record] = event["Records"]
    failure = index(records)
    if failure is not None and failure == records[0]["dynamodb"]["SequenceNumber"]:
        raise NothingIndexed(f"stream record {failure}")
    return {"batchItemFailures": [] if failure is None else [{"itemIdentifier": failure}]}


def index(records: Sequence[Record]) -> str | None:
    """The sequence number of the record to start again from, or None."""
    handled_by: dict[Projector, list[int]] = {}
    expiring: list[int] = []
    for position, record in enumerate(records):
        for projector in _PROJECTORS.get(_type(record), ()):
            handled_by.setdefault(projector, []).append(position)
        if _type(record) in EXPIRING:
            expiring.append(position)
        if webhook_events.announces(record["dynamodb"]):
            handled_by.setdefault(webhook_events.project, []).append(position)
        if _type(record) in ARCHIVING:
            handled_by.setdefault(archived.project, []).append(position)
    if expiring:
        # After those that put the children which are to expire.
        handled_by[expiry.project] = expiring
    failed: list[int] = []
    for project, positions in handled_by.items():
        try:
            project([records[position]["dynamodb"] for position in positions])
        except Exception:
            failed.append(positions[0])
            logger.exception(
                "stream records could not be indexed", extra={"by": project.__module__}
            )
    if not failed:
        return None
    sequence_number: str = records[min(failed)]["dynamodb"]["SequenceNumber"]
    return sequence_number


def tell(records: Sequence[Record]) -> None:
    """What records alone say, whatever becomes of what is derived: webhooks hear of writes, the
    remover of what is gone. May be repeated; raises what prevents it."""
    said = [one["dynamodb"] for one in records if webhook_events.announces(one["dynamodb"])]
    if said:
        webhook_events.project(said)
    ended = [one["dynamodb"] for one in records if _type(one) in EXPIRING]
    if ended:
        expiry.project(ended)
    kept = [one["dynamodb"] for one in records if _type(one) in ARCHIVING]
    if kept:
        archived.project(kept)


def queues_of(records: Sequence[Record]) -> list[str]:
    """The environment variables that :func:`tell` needs for some records."""
    found = []
    if any(webhook_events.announces(one["dynamodb"]) for one in records):
        found.append(webhook_events.QUEUE)
    if any(_type(one) in EXPIRING and "NewImage" not in one["dynamodb"] for one in records):
        found.append(file_removals.QUEUE)
    return found


def _type(record: Record) -> str:
    image: Raw = record["dynamodb"].get("NewImage") or record["dynamodb"].get("OldImage") or {}
    return text_of(image, Item.type.attr_name) or ""
