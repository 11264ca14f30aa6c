"""The view ``system.serving.served_entities``: one row for each endpoint of the AI gateway that was
called, in the columns of Databricks' table of this name.

Databricks has a row for each version of each model behind an endpoint. Here an endpoint stands for
what it serves: the ``served_entity_id`` of ``system.serving.endpoint_usage`` is the endpoint's id,
and each id has one row, so a join on it keeps the number of calls. Names and models are those of
the endpoint's last call. What the gateway does not record is NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mltables import gateway_usage_view

NAME: Final = "serving_served_entities"

_LAST: Final = "(request_time, trace_id)"
_ORDER: Final = ("request_time", "trace_id")
_PROVISIONED: Final = "min_provisioned_throughput BIGINT, max_provisioned_throughput BIGINT"
_CONCURRENT: Final = "min_concurrency BIGINT, max_concurrency BIGINT, compute_type VARCHAR"


def _of_last_call(column: str) -> tuple[str, str, tuple[str, ...]]:
    """The column of ``gateway_usage`` in the last call that has a value in it."""
    kind = gateway_usage_view.COLUMNS[column]
    sql = f"max_by({column}, {_LAST}) FILTER ({column} IS NOT NULL)"
    return kind, sql, (column, *_ORDER)


def _unknown(kind: str) -> tuple[str, str, tuple[str, ...]]:
    return kind, f"CAST(NULL AS {kind})", ()


_NAME: Final = _of_last_call("endpoint_name")
_PROVIDER: Final = _of_last_call("provider")
_COLUMNS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "served_entity_id": ("VARCHAR", "endpoint_id", ()),
    "account_id": _unknown("VARCHAR"),
    "workspace_id": _of_last_call("workspace_id"),
    "created_by": _unknown("VARCHAR"),
    "endpoint_name": _NAME,
    "endpoint_id": ("VARCHAR", "endpoint_id", ()),
    "served_entity_name": _NAME,
    "entity_type": ("VARCHAR", "'EXTERNAL_MODEL'", ()),
    "entity_name": _of_last_call("model"),
    "entity_version": _unknown("VARCHAR"),
    "endpoint_config_version": _unknown("BIGINT"),
    "task": _unknown("VARCHAR"),
    "external_model_config": (
        "STRUCT(provider VARCHAR)",
        f"{{'provider': {_PROVIDER[1]}}}",
        _PROVIDER[2],
    ),
    "foundation_model_config": _unknown(f"STRUCT({_PROVISIONED})"),
    "custom_model_config": _unknown(f"STRUCT({_CONCURRENT})"),
    "feature_spec_config": _unknown(f"STRUCT({_CONCURRENT})"),
    "change_time": _unknown("TIMESTAMP WITH TIME ZONE"),
    "endpoint_delete_time": _unknown("TIMESTAMP WITH TIME ZONE"),
}
"""Type in DuckDB, an aggregate over the calls of an endpoint, and the columns of ``gateway_usage``
that it reads."""

COLUMNS: Final[Mapping[str, str]] = {name: kind for name, (kind, *_) in _COLUMNS.items()}
"""The columns of the view and their types in DuckDB, in order."""
TABLES: Final = gateway_usage_view.TABLES


def tables_read(columns: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the system tables from which these columns of the view ``served_entities`` are
    computed, each with those of the table's columns that are read."""
    return gateway_usage_view.tables_read(_read(columns))


def definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``system.serving.served_entities``: it has
    the wanted ``columns``, and reads the tables in ``schema``."""
    named = [name for name in _COLUMNS if name in columns] or ["endpoint_id"]
    selected = ", ".join(f"{_COLUMNS[name][1]} AS {name}" for name in named)
    calls = gateway_usage_view.definition(schema, _read(named))
    return f"SELECT {selected} FROM ({calls}) calls GROUP BY endpoint_id"


def _read(columns: Collection[str]) -> frozenset[str]:
    read = {source for name in columns if name in _COLUMNS for source in _COLUMNS[name][2]}
    return frozenset(read | {"endpoint_id"})
