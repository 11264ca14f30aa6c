"""Everything that a deployment has stored, as text; and what Firehose does for its audit."""

from __future__ import annotations

import gzip
import io
import json
import time
import uuid
from collections.abc import Iterator

import polars
from deltalake import DeltaTable

from mltables import table_definitions
from tests.item_text import text_of
from tests.rehearsal.stack import Stack, credentials

_PAGE = 1_000
"""Log events in an object."""


def deliver_audit(stack: Stack) -> int:
    """Brings the audited requests from the functions' logs into the bucket of the system tables, as
    the subscriptions and the delivery stream of the stack do: the emulator keeps both and moves
    nothing. Returns the number of requests."""
    logs, files = stack.client("logs"), stack.client("s3")
    delivered = 0
    pages = logs.get_paginator("describe_log_groups").paginate(
        logGroupNamePrefix=f"/aws/lambda/{stack.name}-"
    )
    for group in (log_group["logGroupName"] for page in pages for log_group in page["logGroups"]):
        [*filters] = logs.describe_subscription_filters(logGroupName=group)["subscriptionFilters"]
        if not filters:
            continue
        assert filters[0]["filterPattern"] == "{ $.audit.outcome = * }"
        assert ":deliverystream/" in filters[0]["destinationArn"]
        paginate = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        events = [
            event for page in paginate for event in page["events"] if _is_audited(event["message"])
        ]
        for first in range(0, len(events), _PAGE):
            message = {
                "messageType": "DATA_MESSAGE",
                "logGroup": group,
                "logEvents": [
                    {
                        "id": uuid.uuid5(uuid.NAMESPACE_URL, event["message"]).hex,
                        "timestamp": event["timestamp"],
                        "message": event["message"],
                    }
                    for event in events[first : first + _PAGE]
                ],
            }
            files.put_object(
                Bucket=stack.outputs["SystemTablesBucketName"],
                Key=f"landing/audit-{time.strftime('%Y-%m-%d')}/{uuid.uuid4().hex}.logs.gz",
                Body=gzip.compress(json.dumps(message).encode()),
            )
        delivered += len(events)
    return delivered


def _is_audited(message: str) -> bool:
    try:
        line = json.loads(message)
    except ValueError:
        return False
    return isinstance(line, dict) and "outcome" in (line.get("audit") or {})


def items(stack: Stack) -> Iterator[str]:
    """The text of each item of the table."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.table)
    return (text_of(item) for page in pages for item in page["Items"])


def files(stack: Stack, output: str) -> Iterator[tuple[str, str]]:
    """Key and text of each file of a bucket. Rows of Parquet files are read, and compressed files
    unpacked."""
    service, bucket = stack.client("s3"), stack.outputs[output]
    for page in service.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", ()):
            content = service.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            yield entry["Key"], _text(entry["Key"], content)


def _text(key: str, content: bytes) -> str:
    if key.endswith(".parquet"):
        return str(polars.read_parquet(io.BytesIO(content)).to_dicts())
    if key.endswith(".gz"):
        content = gzip.decompress(content)
    return content.decode(errors="replace")


def tables_with(stack: Stack, name: str) -> list[str]:
    """The system tables that name somebody now."""
    options = _options(stack)
    return [
        table
        for table, uri in _tables(stack)
        if name in str(polars.scan_delta(uri, storage_options=options).collect().to_dicts())
    ]


def remove_former_files(stack: Stack) -> None:
    """As the upkeep of the tables does a day later."""
    for _, uri in _tables(stack):
        DeltaTable(uri, storage_options=_options(stack)).vacuum(
            retention_hours=0, enforce_retention_duration=False, dry_run=False
        )


def _tables(stack: Stack) -> Iterator[tuple[str, str]]:
    """Names and addresses of the system tables that have been written."""
    bucket = stack.outputs["SystemTablesBucketName"]
    for table in (definition.name for definition in table_definitions.TABLES):
        uri = f"s3://{bucket}/system/mlflow/{table}"
        if DeltaTable.is_deltatable(uri, storage_options=_options(stack)):
            yield table, uri


def _options(stack: Stack) -> dict[str, str]:
    return {
        **credentials(stack.region),
        "AWS_ENDPOINT_URL": stack.endpoint,
        "AWS_ALLOW_HTTP": "true",
    }
