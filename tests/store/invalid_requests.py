"""Requests that DynamoDB refuses, each for another reason."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]


def invalid_requests(table: str, key: Raw) -> tuple[tuple[str, Raw], ...]:
    """Operations and parameters, about the item with a key. Those of single items lack the table's
    name."""
    text = {":v": {"S": "x"}}
    item: dict[str, Any] = {**key, "n": {"N": "1"}}
    return (
        ("PutItem", {"Item": {"PK": {"S": "p"}}}),
        ("PutItem", {"Item": {**key, "SK": {"S": ""}}}),
        ("PutItem", {"Item": {**key, "SK": {"N": "1"}}}),
        ("PutItem", {"Item": {**key, "SK": {"S": "k" * 1025}}}),
        ("PutItem", {"Item": {**key, "PK": {"S": "k" * 2049}}}),
        ("PutItem", {"Item": {**item, "lsi1sk": {"N": "1"}}}),
        ("PutItem", {"Item": {**item, "gsi1pk": {"S": ""}}}),
        ("PutItem", {"Item": {**item, "n": {"N": "one"}}}),
        ("PutItem", {"Item": {**item, "n": {"N": "1" * 39}}}),
        ("PutItem", {"Item": {**item, "n": {"N": "1e126"}}}),
        ("PutItem", {"Item": {**item, "n": {"N": "1e-131"}}}),
        ("PutItem", {"Item": {**item, "s": {"SS": []}}}),
        ("PutItem", {"Item": {**item, "s": {"SS": ["a", "a"]}}}),
        ("PutItem", {"Item": {**item, "s": {"NS": ["1", "1.0"]}}}),
        ("PutItem", {"Item": {**item, "s": {"S": "x" * 410_000}}}),
        ("PutItem", {"Item": item, "ReturnValues": "ALL_NEW"}),
        ("PutItem", {"Item": item, "ConditionExpression": "attribute_exists(PK"}),
        ("PutItem", {"Item": item, "ConditionExpression": "n = "}),
        ("PutItem", {"Item": item, "ConditionExpression": "n = :v"}),
        ("PutItem", {"Item": item, "ConditionExpression": "#n = n"}),
        ("PutItem", {"Item": item, "ExpressionAttributeValues": text}),
        ("DeleteItem", {"Key": {"PK": {"S": "p"}}}),
        ("DeleteItem", {"Key": {**key, "n": {"S": "x"}}}),
        ("GetItem", {"Key": {**key, "PK": {"N": "1"}}}),
        ("GetItem", {"Key": key, "ProjectionExpression": "n, n"}),
        ("GetItem", {"Key": key, "ProjectionExpression": "n,"}),
        *(
            ("UpdateItem", {"Key": key, "UpdateExpression": expression, **values})
            for expression, values in (
                ("SET PK = :v", {"ExpressionAttributeValues": text}),
                ("SET n = :v, n = :v", {"ExpressionAttributeValues": text}),
                ("SET m.a = :v, m = :v", {"ExpressionAttributeValues": text}),
                ("SET n = :v SET s = :v", {"ExpressionAttributeValues": text}),
                ("SET lsi1sk = :v", {"ExpressionAttributeValues": {":v": {"S": ""}}}),
                ("SET lsi1sk = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
                ("ADD s :v", {"ExpressionAttributeValues": text}),
                ("DELETE n :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
                ("SET missing.inner = :v", {"ExpressionAttributeValues": text}),
                ("SET n = missing", {}),
                ("SET n = n + :v", {"ExpressionAttributeValues": text}),
                ("CHANGE n = :v", {"ExpressionAttributeValues": text}),
                ("SET n :v", {"ExpressionAttributeValues": text}),
                ("", {}),
                ("SET n = :v", {"ExpressionAttributeValues": {**text, ":w": {"S": "y"}}}),
                ("SET n = :v " + " " * 4096, {"ExpressionAttributeValues": text}),
                ("SET s = :v", {"ExpressionAttributeValues": {":v": {"S": "x" * 410_000}}}),
            )
        ),
        *(
            ("Query", {"KeyConditionExpression": condition, **more})
            for condition, more in (
                ("PK = :v", {"ExpressionAttributeValues": text, "Limit": 0}),
                ("PK = :v", {"ExpressionAttributeValues": text, "IndexName": "none"}),
                ("PK = :v", {"ExpressionAttributeValues": text, "IndexName": "GSI1"}),
                ("PK > :v", {"ExpressionAttributeValues": text}),
                ("SK = :v", {"ExpressionAttributeValues": text}),
                ("PK = :v AND n = :v", {"ExpressionAttributeValues": text}),
                ("PK = :v OR SK = :v", {"ExpressionAttributeValues": text}),
                ("PK = :v AND SK <> :v", {"ExpressionAttributeValues": text}),
                ("PK = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
                (
                    "PK = :v AND SK BETWEEN :v AND :w",
                    {"ExpressionAttributeValues": {**text, ":w": {"S": "a"}}},
                ),
                (
                    "PK = :v",
                    {
                        "ExpressionAttributeValues": text,
                        "ExclusiveStartKey": {"PK": {"S": "x"}},
                    },
                ),
                (
                    "PK = :v",
                    {
                        "ExpressionAttributeValues": text,
                        "Select": "COUNT",
                        "ProjectionExpression": "n",
                    },
                ),
                (
                    "gsi1pk = :v",
                    {
                        "ExpressionAttributeValues": text,
                        "IndexName": "GSI1",
                        "ConsistentRead": True,
                    },
                ),
                (
                    "gsi1pk = :v",
                    {
                        "ExpressionAttributeValues": text,
                        "IndexName": "GSI1",
                        "Select": "ALL_ATTRIBUTES",
                    },
                ),
            )
        ),
        ("BatchGetItem", {"RequestItems": {table: {"Keys": [key, key]}}}),
        ("BatchGetItem", {"RequestItems": {table: {"Keys": []}}}),
        (
            "BatchWriteItem",
            {"RequestItems": {table: [{"DeleteRequest": {"Key": key}}] * 2}},
        ),
        ("BatchWriteItem", {"RequestItems": {table: []}}),
        (
            "BatchWriteItem",
            {
                "RequestItems": {
                    table: [
                        {"PutRequest": {"Item": {**key, "SK": {"S": f"{n}"}}}} for n in range(26)
                    ]
                }
            },
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Delete": {"TableName": table, "Key": key}}] * 2},
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {
                        "Update": {
                            "TableName": table,
                            "Key": key,
                            "UpdateExpression": "SET lsi1sk = :v",
                            "ExpressionAttributeValues": {":v": {"N": "1"}},
                        }
                    }
                ]
            },
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {
                        "Put": {
                            "TableName": table,
                            "Item": {**item, "s": {"S": "x" * 410_000}},
                        }
                    }
                ]
            },
        ),
    )
