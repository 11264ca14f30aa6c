"""AWS's prices in dollars, for the bills of `make cost` and the view `request_costs`.

These are list prices of us-east-1 from AWS's pricing pages, without free allowances (a million
requests of SQS and Lambda, ten alarms, three dashboards, 25 GB of a table) and discounts. They were
entered by hand: compare them with AWS's pages before you rely on them.
"""

from __future__ import annotations

from typing import Final

DATE: Final = "2025-11"
"""The month in which these were the list prices."""

HOURS: Final = 730
SECONDS: Final = HOURS * 3600
DAYS: Final = 30
MILLION: Final = 1_000_000

# DynamoDB, on demand
WRITE_UNIT: Final = 0.625 / MILLION
READ_UNIT: Final = 0.125 / MILLION
TABLE_GB: Final = 0.25
BACKUP_GB: Final = 0.20
"""Point-in-time recovery, per GB of the table."""

# Lambda, on arm64
GB_SECOND: Final = 0.0000133334
GB_SECOND_X86: Final = 0.0000166667
INVOCATION: Final = 0.20 / MILLION
SNAPSHOT_GB_SECOND: Final = 0.0000015046
"""SnapStart's cache, per version with a snapshot and GB of the function's memory."""
SNAPSHOT_GB_RESTORED: Final = 0.0001397998

# In front
API_REQUEST: Final = 1.00 / MILLION
STREAM_REQUEST: Final = 3.50 / MILLION
"""A request to the REST API that streams the answers of the AI gateway."""
CLOUDFRONT_REQUEST: Final = 0.01 / 10_000
CLOUDFRONT_GB: Final = 0.085
CLOUDFRONT_FUNCTION: Final = 0.10 / MILLION
EGRESS_GB: Final = 0.09
"""Data from S3 and API Gateway to the internet. Data to CloudFront is free, and so is data from S3
within its region."""

# Files, queues, keys
FILES_GB: Final = 0.023
FILES_PUT: Final = 0.005 / 1_000
FILES_GET: Final = 0.0004 / 1_000
FILE_EVENT: Final = 1.00 / MILLION
"""S3's events to EventBridge, for which a bucket opts in."""
QUEUE_REQUEST: Final = 0.40 / MILLION
KEY: Final = 1.00
KEY_RENEWAL: Final = 1.00
"""Per month, after each of the first two rotations."""

# CloudWatch
ALARM_METRIC: Final = 0.10
DASHBOARD: Final = 3.00
METRIC: Final = 0.30
LOG_GB: Final = 0.50
LOG_GB_KEPT: Final = 0.03
FIREHOSE_GB: Final = 0.029
"""Each record counts as a multiple of :data:`FIREHOSE_RECORD_GB`."""
FIREHOSE_RECORD_GB: Final = 5e-6
