"""Builds the GraphQL schema from MLflow's definition and the resolvers. Fields without a resolver
are read from JSON, with protobuf's defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from graphql.language import IntValueNode
from graphql.type import (
    GraphQLEnumType,
    GraphQLList,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
)
from graphql.utilities import build_schema

from ui.graphql import resolvers
from ui.graphql.definition import DEFINITION

_SCALARS: Final = {"String": "", "Boolean": False, "Float": 0.0, "Int": 0, "LongString": 0}
_CAPITAL: Final = re.compile("[A-Z]")

_RESOLVERS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("Query", "mlflowGetExperiment"): resolvers.get_experiment,
    ("Query", "mlflowGetMetricHistoryBulkInterval"): resolvers.get_metric_history_bulk_interval,
    ("Query", "mlflowGetRun"): resolvers.get_run,
    ("Query", "mlflowListArtifacts"): resolvers.list_artifacts,
    ("Query", "mlflowSearchModelVersions"): resolvers.search_model_versions,
    ("Query", "mlflowSearchRuns"): resolvers.search_runs,
    ("Query", "test"): resolvers.echo,
    ("Mutation", "mlflowSearchDatasets"): resolvers.search_datasets,
    ("Mutation", "mlflowSearchRuns"): resolvers.search_runs,
    ("Mutation", "testMutation"): resolvers.echo,
    ("MlflowRunExtension", "experiment"): resolvers.experiment_of_run,
    ("MlflowRunExtension", "modelVersions"): resolvers.model_versions_of_run,
}


def _build() -> GraphQLSchema:
    schema = build_schema(DEFINITION, assume_valid=True)
    long = schema.type_map["LongString"]
    assert isinstance(long, GraphQLScalarType)  # noqa: S101 - for the type checker
    long.serialize = str  # type: ignore[assignment]
    long.parse_value = int  # type: ignore[assignment]
    long.parse_literal = _long_literal  # type: ignore[method-assign, assignment]
    for name, kind in schema.type_map.items():
        if not isinstance(kind, GraphQLObjectType) or name.startswith("__"):
            continue
        for field_name, field in kind.fields.items():
            field.resolve = _RESOLVERS.get((name, field_name)) or _json_resolver(
                field_name, field.type
            )
    metric = schema.type_map["MlflowMetricExtension"]
    assert isinstance(metric, GraphQLObjectType)  # noqa: S101 - for the type checker
    metric.fields["value"].resolve = _value_or_null
    return schema


def _json_resolver(name: str, kind: Any) -> Callable[..., Any]:
    """Returns a resolver that reads a field from MLflow's JSON. MLflow omits unset fields, which
    have protobuf's default."""
    key = _CAPITAL.sub(lambda capital: "_" + capital.group().lower(), name)
    default = _default(kind)
    return lambda source, _info: source.get(key, default)


def _default(kind: Any) -> Any:
    if isinstance(kind, GraphQLList):
        return []
    if isinstance(kind, GraphQLEnumType):
        return next(iter(kind.values))
    if isinstance(kind, GraphQLObjectType):
        return None if kind.name == "ApiError" else {}
    return _SCALARS[kind.name]


def _value_or_null(source: Mapping[str, Any], _info: Any) -> float | None:
    value: float = source.get("value", 0.0)
    return None if math.isnan(value) else value


def _long_literal(node: Any, _variables: Any = None) -> int | None:
    return int(node.value) if isinstance(node, IntValueNode) else None


SCHEMA: Final = _build()
