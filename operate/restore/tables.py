"""Restores a table to a point in time, as a new table with everything that a stack's table has."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from operate.restore.failure import CannotRestore

STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
TTL: Final = {"Enabled": True, "AttributeName": "ttl"}
INDEXES: Final = 5
"""Local, and global, indexes of a table."""
PAUSE_SECONDS: Final = 5.0
RESTORE_SECONDS: Final = 48 * 3600
"""A restore takes from minutes to hours, by the table's size."""


def restore(
    dynamodb: Any, source: str, target: str, moment: datetime | None, pause: float = PAUSE_SECONDS
) -> None:
    """Makes ``target`` from ``source``; continues where an earlier call was interrupted.

    Args:
        source: name or ARN of the table; the ARN of one in another region restores across regions.
        moment: None for the latest that can be restored.
        pause: seconds between two looks at a table that is being made.

    Raises:
        CannotRestore: the moment is outside the window, or ``target`` is another table.
    """
    if not _exists(dynamodb, target):
        _check_window(dynamodb, source, moment)
        asked: dict[str, Any] = {"TargetTableName": target}
        asked["SourceTableArn" if source.startswith("arn:") else "SourceTableName"] = source
        if moment is None:
            asked["UseLatestRestorableTime"] = True
        else:
            asked["RestoreDateTime"] = moment
        dynamodb.restore_table_to_point_in_time(**asked)
    complete(dynamodb, target, pause)


def complete(dynamodb: Any, table: str, pause: float = PAUSE_SECONDS) -> None:
    """Waits for a table, and turns on what a restore leaves out: stream, TTL, point-in-time
    recovery, protection from deletion.

    Raises:
        CannotRestore: the table lacks indexes, or was not made in two days.
    """
    described = _active(dynamodb, table, pause)
    counts = [len(described.get(f"{kind}SecondaryIndexes", ())) for kind in ("Local", "Global")]
    if counts != [INDEXES, INDEXES]:
        raise CannotRestore(f"{table} has {counts} local and global indexes, not {INDEXES} of each")
    if not described.get("StreamSpecification", {}).get("StreamEnabled"):
        dynamodb.update_table(TableName=table, StreamSpecification=STREAM)
        _active(dynamodb, table, pause)
    if not described.get("DeletionProtectionEnabled"):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
        _active(dynamodb, table, pause)
    expires = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if expires.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=TTL)
    if _recovery(dynamodb, table).get("PointInTimeRecoveryStatus") != "ENABLED":
        dynamodb.update_continuous_backups(
            TableName=table,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )


def _exists(dynamodb: Any, table: str) -> bool:
    try:
        dynamodb.describe_table(TableName=table)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return False
        raise
    return True


def _check_window(dynamodb: Any, source: str, moment: datetime | None) -> None:
    """A table of another region is asked by DynamoDB itself."""
    if moment is None or source.startswith("arn:"):
        return
    recovery = _recovery(dynamodb, source)
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        raise CannotRestore(f"{source} has no point-in-time recovery")
    earliest = recovery.get("EarliestRestorableDateTime")
    latest = recovery.get("LatestRestorableDateTime") or datetime.now(UTC)
    if (earliest is not None and moment < earliest) or moment > latest:
        raise CannotRestore(f"{source} can be restored from {earliest} to {latest}, not {moment}")


def _recovery(dynamodb: Any, table: str) -> dict[str, Any]:
    described = dynamodb.describe_continuous_backups(TableName=table)
    found: dict[str, Any] = described["ContinuousBackupsDescription"].get(
        "PointInTimeRecoveryDescription", {}
    )
    return found


def _active(dynamodb: Any, table: str, pause: float) -> dict[str, Any]:
    deadline = time.monotonic() + RESTORE_SECONDS
    while True:
        described: dict[str, Any] = dynamodb.describe_table(TableName=table)["Table"]
        if described["TableStatus"] == "ACTIVE":
            return described
        if time.monotonic() > deadline:
            raise CannotRestore(f"{table} is {described['TableStatus']} after two days")
        time.sleep(pause)
