"""Checks the DynamoDB table: status, stream, indexes and protection."""

from __future__ import annotations

from typing import Any, Final

from operate.doctor.checkup_state import Checkup, expect

_GB: Final = 1e9


def read(checkup: Checkup) -> str:
    """Checks that the table is active, has a stream and all its indexes, and deletes expired items.
    Returns the result as a text; raises Wrong, or LeftOut if no stack is checked."""
    aws = checkup.aws
    service, name = aws.client("dynamodb"), aws.outputs["TableName"]
    table: dict[str, Any] = service.describe_table(TableName=name)["Table"]
    expect(table["TableStatus"] == "ACTIVE", f"the table is {table['TableStatus']}")
    view = table.get("StreamSpecification", {}).get("StreamViewType")
    expect(view == "NEW_AND_OLD_IMAGES", f"the stream has {view}")
    counts = [len(table.get(f"{kind}SecondaryIndexes", ())) for kind in ("Local", "Global")]
    expect(counts == [5, 5], f"the table has {counts} local and global indexes")
    ttl = service.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    expect(ttl.get("AttributeName") == "ttl", "items do not expire")
    protected = "" if table.get("DeletionProtectionEnabled") else "; it can be deleted"
    size = table.get("TableSizeBytes", 0) / _GB
    return f"{table.get('ItemCount', 0)} items, {size:.3f} GB (of some hours ago){protected}"
