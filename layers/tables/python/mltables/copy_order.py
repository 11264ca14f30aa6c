"""The order of the rows in the copy that a restricted caller gets of a system table. Equal rows
make equal files, so that nothing tells where rows of others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mltables import span_attribute_columns
from mltables.table_columns import TIME, Table

_FIRST: Final = ("experiment_id", "run_id", "metric_name", "metric_step", "metric_time")
"""The first sort columns of the history's rows. All other columns that are read follow, because no
columns identify a row."""

_NUMBERS: Final = frozenset(("BIGINT", "BOOLEAN", TIME))
"""Types that take few bytes and whose equal values are written alike."""
_SHORT: Final = frozenset(
    (
        *("account_id", "workspace_id", "experiment_id", "trace_id", "span_id", "parent_span_id"),
        *("name", "kind", "state", "trace_name", "assessment_name", "source_type"),
        *(*span_attribute_columns.COLUMNS.values(), span_attribute_columns.EVENT_NAMES),
    )
)
"""Columns with texts that are short as a rule."""


def sort_order(table: Table, columns: Sequence[str]) -> str:
    """Returns the columns by which the copied rows are sorted, so that equal rows make equal files:
    all columns of the copy if these are short, otherwise those that identify a row."""
    if table.identity:
        kinds = {name: kind for name, kind, *_ in table.columns}
        if not all(name in _SHORT or kinds.get(name) in _NUMBERS for name in columns):
            return table.identity
        # Ids, which are long, need not be read only for the order. Numbers are compared first.
        return ", ".join(sorted(columns, key=lambda name: kinds.get(name) not in _NUMBERS))
    first = [name for name in _FIRST if name in columns]
    rest = [name for name in columns if name not in first]
    # 0.0 and -0.0 compare equal but print differently.
    sign = ["signbit(metric_value)"] if "metric_value" in columns else []
    return ", ".join([*first, *rest, *sign])
