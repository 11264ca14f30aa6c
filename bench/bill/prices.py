"""Dollars that AWS asks for, in one place.

List prices of us-east-1 as AWS's pricing pages showed them, without free allowances (a million
requests of SQS and Lambda, ten alarms, three dashboards, 25 GB of a table) and without discounts.
They were not fetched by a program: compare before you rely on them.
"""

from __future__ import annotations

from typing import Final

DATE: Final = "2025-11"
"""When these were the list prices."""

HOURS: Final = 730
SECONDS: Final = HOURS * 3600
DAYS: Final = 30
MILLION: Final = 1_000_000

# DynamoDB, on demand
WRITE_UNIT: Final = 0.625 / MILLION
READ_UNIT: Final = 0.125 / MILLION
TABLE_GB: Final = 0.25
BACKUP_GB: Final = 0.20
"""Point-in-time recovery, of each GB of the table."""

# Lambda, on arm64
GB_SECOND: Final = 0.0000133334
INVOCATION: Final = 0.20 / MILLION
SNAPSHOT_GB_SECOND: Final = 0.0000015046
"""SnapStart's cache: of each version that has a snapshot, by the function's memory."""
SNAPSHOT_GB_RESTORED: Final = 0.0001397998

# In front
API_REQUEST: Final = 1.00 / MILLION
CLOUDFRONT_REQUEST: Final = 0.01 / 10_000
CLOUDFRONT_GB: Final = 0.085

# Files, queues, keys
FILES_GB: Final = 0.023
FILES_PUT: Final = 0.005 / 1_000
QUEUE_REQUEST: Final = 0.40 / MILLION
KEY: Final = 1.00
KEY_RENEWAL: Final = 1.00
"""A month, after each of the first two renewals."""

# CloudWatch
ALARM_METRIC: Final = 0.10
DASHBOARD: Final = 3.00
METRIC: Final = 0.30
LOG_GB: Final = 0.50
LOG_GB_KEPT: Final = 0.03
