"""The views ``system.ai_gateway.usage`` and ``system.serving.endpoint_usage``: calls of the AI
gateway in the columns of Databricks' tables of these names, so that queries on them run unchanged.

Both show the rows of ``gateway_usage`` under other names. What the gateway does not record is NULL,
or an empty map.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from mltables import gateway_usage_view


class _Column(NamedTuple):
    kind: str
    """The type in DuckDB."""
    sql: str
    """An expression over columns of ``gateway_usage``."""
    reads: tuple[str, ...] = ()


def _same(name: str, of: str = "") -> dict[str, _Column]:
    """A column that shows the column ``of`` of ``gateway_usage`` under another name; by default one
    of the same name."""
    source = of or name
    return {name: _Column(gateway_usage_view.COLUMNS[source], source, (source,))}


def _unknown(kind: str) -> _Column:
    return _Column(kind, f"CAST(NULL AS {kind})")


_TAGS: Final = "MAP(VARCHAR, VARCHAR)"
_NO_TAGS: Final = _Column(_TAGS, f"CAST(MAP {{}} AS {_TAGS})")
_STATUS: Final = _Column(
    "BIGINT",
    "coalesce(error_status, CASE outcome WHEN 'OK' THEN 200 END)",
    ("error_status", "outcome"),
)
_CACHED: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")

_USAGE: Final[Mapping[str, _Column]] = {
    "account_id": _unknown("VARCHAR"),
    **_same("workspace_id"),
    **_same("request_id", "trace_id"),
    **_same("endpoint_id"),
    **_same("endpoint_name"),
    "endpoint_tags": _NO_TAGS,
    "service_name": _unknown("VARCHAR"),
    "service_type": _unknown("VARCHAR"),
    **_same("event_time", "request_time"),
    **_same("latency_ms"),
    "time_to_first_byte_ms": _unknown("BIGINT"),
    "destination_type": _Column(
        "VARCHAR", "CASE WHEN provider IS NOT NULL THEN 'EXTERNAL_MODEL' END", ("provider",)
    ),
    **_same("destination_name", "provider"),
    **_same("destination_model", "model"),
    **_same("requester", "user_name"),
    "requester_type": _unknown("VARCHAR"),
    **_same("user_agent", "caller"),
    **_same("api_type", "request_type"),
    "request_tags": _NO_TAGS,
    **_same("input_tokens"),
    **_same("output_tokens"),
    **_same("total_tokens"),
    "token_details": _Column(
        f"STRUCT({', '.join(f'{name} BIGINT' for name in _CACHED)})",
        "{" + ", ".join(f"'{name}': {name}" for name in _CACHED) + "}",
        _CACHED,
    ),
    "status_code": _STATUS,
    "invocation_metadata": _unknown("STRUCT(source VARCHAR)"),
    "routing_information": _unknown("STRUCT(attempts STRUCT(action VARCHAR)[])"),
    "mcp_metadata": _unknown("STRUCT(tool_name VARCHAR, server_type VARCHAR)"),
}
_ENDPOINT_USAGE: Final[Mapping[str, _Column]] = {
    "account_id": _unknown("VARCHAR"),
    **_same("workspace_id"),
    "client_request_id": _unknown("VARCHAR"),
    **_same("databricks_request_id", "trace_id"),
    **_same("requester", "user_name"),
    "status_code": _STATUS,
    **_same("request_time"),
    **_same("input_token_count", "input_tokens"),
    **_same("output_token_count", "output_tokens"),
    "input_character_count": _unknown("BIGINT"),
    "output_character_count": _unknown("BIGINT"),
    "usage_context": _NO_TAGS,
    "request_streaming": _unknown("BOOLEAN"),
    **_same("served_entity_id", "endpoint_id"),
    **_same("endpoint_name"),
}


class UsageView:
    """A view that shows ``gateway_usage`` under the column names of one of Databricks' tables."""

    def __init__(self, columns: Mapping[str, _Column]) -> None:
        self._columns: Final = columns
        self.columns: Final = {name: column.kind for name, column in columns.items()}
        """The view's columns and their types in DuckDB, in order."""
        self.renamed: Final = {
            **dict.fromkeys(gateway_usage_view.BOUNDED - columns.keys(), ""),
            **{
                name: column.sql
                for name, column in columns.items()
                if column.sql in gateway_usage_view.BOUNDED
            },
        }
        """The names in ``gateway_usage`` of the columns whose bounds count, by their names in this
        view. A condition on a name that only ``gateway_usage`` has bounds nothing: in a subquery it
        belongs to the statement around it."""

    def tables_read(self, columns: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Returns the system tables from which these columns of the SQL view are computed, each
        with those of its columns that are read."""
        return gateway_usage_view.tables_read(self._read(columns))

    def definition(self, schema: str, columns: Collection[str]) -> str:
        """Returns the query for DuckDB that defines this view of gateway usage: it has the wanted
        ``columns``, and reads the tables in ``schema``."""
        named = [name for name in self._columns if name in columns] or ["workspace_id"]
        selected = ", ".join(f"{self._columns[name].sql} AS {name}" for name in named)
        calls = gateway_usage_view.definition(schema, self._read(named))
        return f"SELECT {selected} FROM ({calls}) calls"

    def _read(self, columns: Collection[str]) -> frozenset[str]:
        return frozenset(
            source
            for name, column in self._columns.items()
            if name in columns
            for source in column.reads
        )


USAGE: Final = UsageView(_USAGE)
ENDPOINT_USAGE: Final = UsageView(_ENDPOINT_USAGE)
