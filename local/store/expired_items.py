"""Deletes expired items, as DynamoDB's time to live does. The stream records the deletions."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from local.store.file_maintenance import TableFile


def delete_expired(
    dynamodb: Any, file: TableFile, table: str, key: list[str], attribute: str
) -> int:
    """Deletes every item whose expiry time in ``attribute`` has passed, but not more than five
    years ago, unless a writer has changed that time meanwhile. Returns the number of deleted items.
    """
    swept = 0
    for item in file.expired(attribute):
        try:
            dynamodb.delete_item(
                TableName=table,
                Key={name: item[name] for name in key},
                ConditionExpression="#ttl = :seen",
                ExpressionAttributeNames={"#ttl": attribute},
                ExpressionAttributeValues={":seen": item[attribute]},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
        else:
            swept += 1
    return swept
