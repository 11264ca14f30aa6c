"""Limits the size of GraphQL queries, with MLflow's limits and messages."""

from __future__ import annotations

import os
from typing import Final

from graphql.error import GraphQLError
from graphql.language import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

MAX_TOKENS: Final = 20_000
"""The most tokens of a query's text. 1,000 selections with arguments stay far below."""
MAX_DEPTH: Final = 10
MAX_SELECTIONS: Final = 1_000

Fragments = dict[str, FragmentDefinitionNode]


def check(document: DocumentNode) -> None:
    """Checks that a parsed GraphQL query keeps the limits on root fields, aliases, depth and
    selections. Must be called before the query is validated and executed.

    Environment:
        MLFLOW_SERVER_GRAPHQL_MAX_ROOT_FIELDS, MLFLOW_SERVER_GRAPHQL_MAX_ALIASES: 10 each by
            default.

    Raises:
        GraphQLError: a limit is exceeded.
    """
    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    roots = aliases = selections = 0
    for definition in document.definitions:
        if not isinstance(definition, OperationDefinitionNode):
            continue
        pending = [(definition.selection_set, 1)]
        while pending:
            selected, depth = pending.pop()
            if depth > MAX_DEPTH:
                raise GraphQLError(f"Query exceeds maximum depth of {MAX_DEPTH}")
            fields = _fields(selected, fragments)
            selections += len(fields)
            if selections > MAX_SELECTIONS:
                raise GraphQLError(f"Query exceeds maximum total selections of {MAX_SELECTIONS}")
            if depth == 1:
                roots += len(fields)
            aliases = max(aliases, sum(field.alias is not None for field in fields))
            pending += [
                (field.selection_set, depth + 1)
                for field in fields
                if field.selection_set is not None
            ]
    _check_count(roots, "root fields", "MLFLOW_SERVER_GRAPHQL_MAX_ROOT_FIELDS")
    _check_count(aliases, "aliases", "MLFLOW_SERVER_GRAPHQL_MAX_ALIASES")


def _fields(selected: SelectionSetNode, fragments: Fragments) -> list[FieldNode]:
    """Returns the fields of one level. Each fragment is replaced by its fields, once."""
    fields: list[FieldNode] = []
    spread: set[str] = set()
    pending = [selected]
    while pending:
        for selection in pending.pop().selections:
            if isinstance(selection, FieldNode):
                fields.append(selection)
            elif isinstance(selection, FragmentSpreadNode):
                name = selection.name.value
                if name in fragments and name not in spread:
                    spread.add(name)
                    pending.append(fragments[name].selection_set)
            else:
                pending.append(selection.selection_set)  # type: ignore[attr-defined]
    return fields


def _check_count(count: int, noun: str, variable: str) -> None:
    limit = int(os.environ.get(variable, "10"))
    if count > limit:
        raise GraphQLError(
            f"GraphQL queries should have at most {limit} {noun}, got {count} {noun}. "
            f"To increase the limit, set the {variable} environment variable."
        )
