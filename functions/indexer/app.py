"""The indexer: the Lambda function that reads the table's stream and keeps derived items (indexes,
child items, history packs) equal to their sources. It also sends webhook events, requests file
removals, and lets deleted entities expire.

All records of a batch that concern one entity are handled together. The derived items are computed
from the source items as they are now, not from the order of the records. If records fail, the
function returns the sequence number from which Lambda must deliver the batch again. If that is the
first record, the function raises instead, so that its error metric counts the failure; Lambda then
delivers the batch again in two halves. All writes are idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from indexer import webhook_events
from indexer.history import history_packing, interrupted_writes, rewind_completion
from indexer.lifecycle import (
    archive_expiry,
    expiry,
    file_removals,
    model_remains,
    skill_files,
    trace_archival,
)
from indexer.projection import experiment_items, quiet_runs, run_items, trace_items
from mlcore import gc_threshold
from mlcore.db import keys
from mlcore.db.attribute_types import text_of
from mlcore.db.expression import Raw
from mlcore.models.base import Item
from mlcore.observability import logger

Record = Mapping[str, Any]
Projector = Callable[[Sequence[Record]], None]
"""Handles the stream records of some item types."""

_PROJECTORS: Mapping[str, tuple[Projector, ...]] = {
    keys.RUN.name: (rewind_completion.project, interrupted_writes.project, run_items.project),
    keys.RUN_METRIC.name: (run_items.project,),
    keys.RUN_PARAM.name: (run_items.project,),
    keys.RUN_INPUT.name: (run_items.project,),
    keys.RUN_METRIC_BATCH.name: (interrupted_writes.project, history_packing.project),
    keys.EXPERIMENT.name: (experiment_items.project,),
    keys.TRACE.name: (trace_items.project,),
    keys.TRACE_SPANS.name: (trace_items.project,),
    keys.TRACE_SPANS_PACK.name: (trace_items.project,),
}

EXPIRING = (
    *(keys.RUN.name, keys.RUN_METRIC_FILE.name, keys.EXPERIMENT.name),
    *(keys.TRACE.name, keys.LOGGED_MODEL.name),
)
"""Types of items that expire or are removed together with their children and files."""

ARCHIVING = (keys.REGISTERED_MODEL.name, keys.MODEL_VERSION.name, keys.MODEL_END.name)
"""Types of items that record which models are archived and when they expire."""

UPLOADED = (keys.SKILL_VERSION.name,)
"""Types of items whose files are deleted when the item is removed."""

ANNOUNCING = (
    *(keys.REGISTERED_MODEL.name, keys.MODEL_VERSION.name, keys.GATEWAY_SPENDING.name),
    keys.ALERT.name,
)
"""Types of items whose writes notify receivers."""


gc_threshold.raise_gc_threshold()


class NothingIndexed(Exception):
    """Raised if nothing of a batch of stream records counts as indexed, because the first record
    must be delivered again; the log has the reason."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handles a batch of a DynamoDB stream and returns, if something failed, the sequence number of
    the first record to deliver again. An event without records comes from the schedule and starts
    the search for quiet runs (see :mod:`indexer.projection.quiet_runs`) and a pass of the archival
    of traces (:mod:`indexer.lifecycle.trace_archival`).

    Raises:
        NothingIndexed: the first record of the batch must be delivered again. Lambda then halves
            the batch, so that a record that always fails is delivered alone and given up at last.
    """
    if "Records" not in event:
        try:
            quiet_runs.sweep()
        finally:  # the failure of one does not stop the other
            trace_archival.run()
        return {}
    records: Sequence[Record] = event["Records"]
    failure = index(records)
    if failure is not None and failure == records[0]["dynamodb"]["SequenceNumber"]:
        raise NothingIndexed(f"stream record {failure}")
    return {"batchItemFailures": [] if failure is None else [{"itemIdentifier": failure}]}


def index(records: Sequence[Record]) -> str | None:
    """Passes each stream record to the functions (projectors) for its item type, which keep derived
    items up to date or act on the record. Returns the sequence number of the first record that a
    failed function got; None if all functions succeeded."""
    failed: list[int] = []
    for projector, positions in _by_projector(records, _projectors).items():
        try:
            projector([records[position]["dynamodb"] for position in positions])
        except Exception:
            failed.append(positions[0])
            logger.exception(
                "stream records could not be indexed", extra={"by": projector.__module__}
            )
    if not failed:
        return None
    sequence_number: str = records[min(failed)]["dynamodb"]["SequenceNumber"]
    return sequence_number


def run_side_effects(records: Sequence[Record]) -> None:
    """Performs the actions that need the stream records themselves, so that the command `reindex`
    cannot repeat them: sends deliveries of webhooks and alerts, requests the removal of files of
    removed entities, lets deleted entities and archived models expire. Idempotent.

    Raises:
        Exception: any error of these actions.
    """
    for projector, positions in _by_projector(records, _side_effects).items():
        projector([records[position]["dynamodb"] for position in positions])


def queues_of(records: Sequence[Record]) -> list[str]:
    """Returns the names of the environment variables with the URLs of those SQS queues to which
    :func:`run_side_effects` may send messages for these stream records."""
    names = []
    if any(map(_announces, records)):
        names.append(webhook_events.QUEUE)
    if any(
        (_type(record) in EXPIRING and file_removals.frees_files(record["dynamodb"]))
        or _is_removed_upload(record)
        for record in records
    ):
        names.append(file_removals.QUEUE)
    return names


def _by_projector(
    records: Sequence[Record], projectors_of: Callable[[Record], Iterable[Projector]]
) -> dict[Projector, list[int]]:
    """Returns for each projector (the function that handles stream records of some kinds of items)
    the positions of its records. The projectors are in the order in which to call them."""
    positions: dict[Projector, list[int]] = {}
    for position, record in enumerate(records):
        for projector in projectors_of(record):
            positions.setdefault(projector, []).append(position)
    if expiry.project in positions:
        # It sets the TTL of child items, so it must run after the projectors that put them.
        positions[expiry.project] = positions.pop(expiry.project)
    return positions


def _projectors(record: Record) -> Iterator[Projector]:
    yield from _PROJECTORS.get(_type(record), ())
    yield from _side_effects(record)


def _side_effects(record: Record) -> Iterator[Projector]:
    """Yields the projectors (functions that handle stream records) whose actions need only the
    record."""
    if _announces(record):
        yield webhook_events.project
    if _type(record) in ARCHIVING:
        yield archive_expiry.project
    if _type(record) in EXPIRING:
        yield expiry.project
    if _is_removed_upload(record):
        yield skill_files.project
    if _type(record) == keys.REGISTERED_MODEL.name and "NewImage" not in record["dynamodb"]:
        yield model_remains.project


def _announces(record: Record) -> bool:
    """Whether a record has a new event for webhooks or of an alert. Items of other types use the
    attribute for the stream's filter alone."""
    return _type(record) in ANNOUNCING and webhook_events.announces(record["dynamodb"])


def _is_removed_upload(record: Record) -> bool:
    return _type(record) in UPLOADED and "NewImage" not in record["dynamodb"]


def _type(record: Record) -> str:
    image: Raw = record["dynamodb"].get("NewImage") or record["dynamodb"].get("OldImage") or {}
    return text_of(image, Item.type.attr_name) or ""
