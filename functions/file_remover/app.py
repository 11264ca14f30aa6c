"""Removes the files of runs, traces, logged models and experiments that are gone.

The indexer says what is gone, and what stays although it lies there; it may not touch files itself.
A message that comes twice finds nothing, one that is cut short goes on where it comes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore import artifacts, errors, file_removal
from mlcore.artifacts.paths import INTERNAL, WORKSPACES
from mlcore.file_removal import Removal
from mlcore.observability import logger


class NothingRemoved(Exception):
    """No message could be handled; the log says why."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """An SQS event in; the ids of the messages to come again out.

    Raises:
        NothingRemoved: all shall come again, which is counted among the function's errors.
    """
    failed = [record for record in event["Records"] if not _handled(record)]
    if len(failed) == len(event["Records"]):
        raise NothingRemoved(f"{len(failed)} messages")
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _handled(record: Mapping[str, Any]) -> bool:
    try:
        remove(file_removal.parse(record["body"]))
    except Exception:
        logger.exception("files could not be removed")
        return False
    return True


def remove(removal: Removal) -> None:
    """Raises TemporarilyUnavailable: call again."""
    for key in _keys(removal):
        artifacts.store().delete_older(key, removal.before_ms / 1000, removal.keep)


def _keys(removal: Removal) -> list[str]:
    if removal.key:
        return [removal.key]
    if removal.internal:
        return [artifacts.internal(removal.workspace, removal.internal)]
    try:
        key = artifacts.locate(removal.location, removal.workspace)
    except errors.InvalidParameterValue:
        return []  # another bucket, another service: not ours to remove
    return [] if key in ("", INTERNAL, WORKSPACES, f"{WORKSPACES}/{removal.workspace}") else [key]
