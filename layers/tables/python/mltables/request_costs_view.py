"""The view ``request_costs``: what each request in the audit log has cost in AWS.

The numbers are those of the request's log line, the prices those of ``make cost``. A row has the
costs of the request itself: API Gateway, the function, and DynamoDB. The view has no rows of its
own: it shows those of ``audit_log`` that have measured costs, with the rights of that table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mlcore.prices import aws
from mltables.table_definitions import AUDIT

NAME: Final = "request_costs"
MEMORY_MB: Final = 1024
"""Memory in MB for requests without it in their log line (on a laptop): the default of the
template's parameter ``MemorySize``."""
STREAMED: Final = "/gateway/"
"""The prefix of paths that a deployment serves through the API that streams."""

_KINDS: Final = {name: kind for name, kind, *_ in AUDIT.columns}
_SAME: Final = (
    *("event_time", "insert_time", "workspace_id", "user_name", "user_id", "key_id"),
    *("rpc", "method", "http_status", "outcome"),
    *("milliseconds", "read_units", "write_units", "round_trips"),
)
_API: Final = (
    f"CASE WHEN starts_with(rpc, '{STREAMED}') THEN {aws.STREAM_REQUEST!r}::DOUBLE "
    f"ELSE {aws.API_REQUEST!r}::DOUBLE END"
)
_MEMORY: Final = f"coalesce(memory_mb, {MEMORY_MB})"
_LAMBDA: Final = (
    f"{aws.INVOCATION!r}::DOUBLE + "
    f"milliseconds / 1000 * ({_MEMORY} / 1024) * {aws.GB_SECOND!r}::DOUBLE"
)
_DYNAMODB: Final = (
    f"read_units * {aws.READ_UNIT!r}::DOUBLE + write_units * {aws.WRITE_UNIT!r}::DOUBLE"
)
_COLUMNS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    **{name: (_KINDS[name], name, (name,)) for name in _SAME},
    "experiment_id": (
        "VARCHAR",
        "CASE WHEN json_valid(entity) THEN json_extract_string(entity, '$.experiment_id') END",
        ("entity",),
    ),
    "memory_mb": ("BIGINT", f"CAST({_MEMORY} AS BIGINT)", ("memory_mb",)),
    "api_gateway_usd": ("DOUBLE", _API, ("rpc",)),
    "lambda_usd": ("DOUBLE", _LAMBDA, ("memory_mb",)),
    "dynamodb_usd": ("DOUBLE", _DYNAMODB, ("read_units", "write_units")),
    "total_usd": (
        "DOUBLE",
        f"{_API} + {_LAMBDA} + {_DYNAMODB}",
        ("rpc", "memory_mb", "read_units", "write_units"),
    ),
}
"""For each column of ``request_costs``: its type in DuckDB, its expression over columns of
``audit_log``, and the columns that the expression reads besides ``milliseconds``."""

COLUMNS: Final[Mapping[str, str]] = {name: kind for name, (kind, *_) in _COLUMNS.items()}
"""The columns of ``request_costs`` and their types in DuckDB, in order."""
TABLES: Final = (AUDIT,)
BOUNDED: Final = frozenset(("insert_time",))
"""Columns of ``request_costs`` that ``audit_log`` has, too: a bound on one of them bounds
``audit_log``."""


def tables_read(columns: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the columns of ``audit_log`` from which these columns of the view ``request_costs``
    are computed: a mapping with this one table."""
    read = {source for name in columns if name in _COLUMNS for source in _COLUMNS[name][2]}
    return {AUDIT.name: frozenset(read | {"milliseconds"})}


def definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``request_costs``: it has the wanted
    ``columns``, and reads the table ``audit_log`` in ``schema``."""
    named = [name for name in _COLUMNS if name in columns] or ["milliseconds"]
    selected = ", ".join(f"{_COLUMNS[name][1]} AS {name}" for name in named)
    return f"SELECT {selected} FROM {schema}.{AUDIT.name} WHERE milliseconds IS NOT NULL"
