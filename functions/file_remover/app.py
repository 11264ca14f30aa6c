"""Deletes the files of removed runs, traces, logged models, experiments and versions of skills, and
files of metric histories that newer files replaced.

The indexer and the function ``skills``, which have no permission to delete files, send messages
that name what to delete and which files below it to keep. A repeated message finds nothing left to
delete, and the repetition of an interrupted one completes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore import artifacts, file_removal_queue
from mlcore.file_removal_queue import Removal
from mlcore.observability import logger


class AllMessagesFailed(Exception):
    """Raised if all messages of an SQS event failed; the log has the reasons."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Deletes the artifact files that the messages of an SQS event name. Returns the ids of the
    messages that failed, which SQS delivers again.

    Raises:
        AllMessagesFailed: all messages failed. SQS delivers them again, and the function's error
            metric counts the failure.
    """
    failed = [record for record in event["Records"] if not _handle(record)]
    if len(failed) == len(event["Records"]):
        raise AllMessagesFailed(f"{len(failed)} messages")
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _handle(record: Mapping[str, Any]) -> bool:
    try:
        remove(file_removal_queue.parse(record["body"]))
    except Exception:
        logger.exception("files could not be removed")
        return False
    return True


def remove(removal: Removal) -> None:
    """Deletes the artifact files that the indexer's SQS message names. Raises
    TemporarilyUnavailable or RequestLimitExceeded if not all could be deleted; the call can be
    repeated."""
    artifacts.store().delete_older(removal.key, removal.before_ms / 1000, removal.keep)
