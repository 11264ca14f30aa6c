"""Restores a DynamoDB table to a point in time, as a new table with everything that a stack's table
has."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from operate.restore.failure import CannotRestore

STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
TTL: Final = {"Enabled": True, "AttributeName": "ttl"}
INDEXES: Final = 5
"""The number of local indexes, and also of global indexes, that the table must have."""
PAUSE_SECONDS: Final = 5.0
RESTORE_SECONDS: Final = 48 * 3600
"""How long to wait for a restore, which takes from minutes to hours depending on the table's
size."""


def restore(
    dynamodb: Any, source: str, target: str, moment: datetime | None, pause: float = PAUSE_SECONDS
) -> None:
    """Restores the table ``source`` as a new table ``target`` with a stack's settings. Continues if
    an earlier call was interrupted.

    Args:
        source: name or ARN of the table; an ARN in another region restores across regions.
        moment: the point in time; None for the latest that can be restored.
        pause: seconds between two checks of a table that is being created.

    Raises:
        CannotRestore: the moment is outside the recovery window, or ``target`` lacks a stack's
            indexes or was not active within two days.
    """
    if not _exists(dynamodb, target):
        _check_window(dynamodb, source, moment)
        request: dict[str, Any] = {"TargetTableName": target}
        request["SourceTableArn" if source.startswith("arn:") else "SourceTableName"] = source
        if moment is None:
            request["UseLatestRestorableTime"] = True
        else:
            request["RestoreDateTime"] = moment
        dynamodb.restore_table_to_point_in_time(**request)
    complete(dynamodb, target, pause)


def complete(dynamodb: Any, table: str, pause: float = PAUSE_SECONDS) -> None:
    """Waits until a restored table is active, then turns on what DynamoDB's restore leaves off:
    stream, TTL, point-in-time recovery, deletion protection.

    Raises:
        CannotRestore: the table lacks indexes, or was not active within two days.
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
    """Raises CannotRestore if the moment is outside the table's recovery window. For a table in
    another region DynamoDB itself checks that."""
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
    recovery: dict[str, Any] = described["ContinuousBackupsDescription"].get(
        "PointInTimeRecoveryDescription", {}
    )
    return recovery


def _active(dynamodb: Any, table: str, pause: float) -> dict[str, Any]:
    deadline = time.monotonic() + RESTORE_SECONDS
    while True:
        described: dict[str, Any] = dynamodb.describe_table(TableName=table)["Table"]
        if described["TableStatus"] == "ACTIVE":
            return described
        if time.monotonic() > deadline:
            raise CannotRestore(f"{table} is {described['TableStatus']} after two days")
        time.sleep(pause)
