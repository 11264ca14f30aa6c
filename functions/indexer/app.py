"""The indexer: follows the table's stream and keeps the items that are derived from source items.

Of one batch the records are handled in their order up to the first that cannot be; that one is
reported, and
Lambda delivers the batch again from there. All writes may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer import experiment_items, history_items, run_items
from mlcore.db.expression import Raw
from mlcore.observability import logger

Record = Mapping[str, Any]

_PROJECTORS = {
    "run": run_items.project,
    "run_metric_batch": history_items.project,
    "experiment": experiment_items.project,
}


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """A DynamoDB stream event in; the sequence number of the first record that failed out, if one
    did."""
    records: Sequence[Record] = event["Records"]
    failure = index(records)
    return {"batchItemFailures": [] if failure is None else [{"itemIdentifier": failure}]}


def index(records: Sequence[Record]) -> str | None:
    """Handles runs of consecutive records of one type together. Returns where to start again, or
    None."""
    at = 0
    while at < len(records):
        kind = _type(records[at])
        end = at
        while end < len(records) and _type(records[end]) == kind:
            end += 1
        try:
            project = _PROJECTORS.get(kind)
            if project is not None:
                project([record["dynamodb"] for record in records[at:end]])
        except Exception:
            sequence_number: str = records[at]["dynamodb"]["SequenceNumber"]
            logger.exception(
                "a stream record could not be indexed", extra={"from": sequence_number}
            )
            return sequence_number
        at = end
    return None


def _type(record: Record) -> str:
    image: Raw = record["dynamodb"].get("NewImage") or record["dynamodb"].get("OldImage") or {}
    kind: str = image.get("type", {}).get("S", "")
    return kind
