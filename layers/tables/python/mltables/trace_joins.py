"""Joins traces, in a caller's SQL, with a subquery that has rows of their spans or assessments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

KEY: Final = {"experiment_id": "inner_experiment_id", "trace_id": "inner_trace_id"}
"""The columns of the join, and their names in the subquery, which no statement uses."""


def joined(
    traces: exp.Table, subquery: exp.Query, alias: str, further: Sequence[exp.Expr]
) -> exp.Join:
    """Returns the JOIN of the table ``traces`` with a subquery, by the ids of :data:`KEY`, which
    are the subquery's first columns.

    Args:
        alias: the name of the subquery.
        further: the names of the subquery's other columns.
    """
    names = [*map(exp.to_identifier, KEY.values()), *further]
    table = traces.alias_or_name
    conditions = [
        exp.EQ(this=exp.column(column, table=table), expression=exp.column(inner, table=alias))
        for column, inner in KEY.items()
    ]
    source = exp.TableAlias(this=exp.to_identifier(alias), columns=names)
    return exp.Join(this=exp.Subquery(this=subquery, alias=source), on=exp.and_(*conditions))
