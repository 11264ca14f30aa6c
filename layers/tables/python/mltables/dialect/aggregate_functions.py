"""Databricks' aggregate functions: for each, DuckDB's aggregate and an expression on its result.

The two are separate because DISTINCT, FILTER, ORDER BY and OVER apply to the aggregate.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Aggregate(NamedTuple):
    """How an aggregate of Databricks is computed in DuckDB. ``inner`` is DuckDB's aggregate over
    the rows, ``outer`` an expression on its result. In ``inner``, ``{0}`` stands for the first
    argument; in ``outer``, ``{a}`` stands for the aggregate, ``{least}`` for the smallest first
    argument and ``{rows}`` for the number of rows in which both arguments are present. ``least``
    and ``most`` bound the number of arguments."""

    least: int
    most: int
    inner: str
    outer: str = "{a}"
    without_null: bool = False
    """Whether rows whose first argument is NULL are skipped."""


_ONE: Final = {
    name: Aggregate(1, 1, f"{name}({{0}})")
    for name in [
        "min",
        "max",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "variance",
        "var_samp",
        "var_pop",
        "bool_and",
        "bool_or",
        "bit_and",
        "bit_or",
        "bit_xor",
        "mode",
    ]
}
_TWO: Final = {
    name: Aggregate(2, 2, f"{name}({{0}}, {{1}})")
    for name in [
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
    ]
}
_LISTED: Final = Aggregate(1, 1, "list({0})", "coalesce({a}, [])", without_null=True)
_MEAN: Final = Aggregate(1, 1, "avg({0})", "inner_mean({a}, typeof({least}))")
_SHAPE: Final = "list(CAST({0} AS DOUBLE))"
_DISC: Final = Aggregate(2, 3, "quantile_disc({0}, {1})")

AGGREGATES: Final = {
    **_ONE,
    **_TWO,
    # For one row, or for equal rows, DuckDB returns NaN.
    "corr": Aggregate(
        2, 2, "corr({0}, {1})", "CASE WHEN isnan({a}) AND {rows} < 2 THEN NULL ELSE {a} END"
    ),
    "count": Aggregate(1, 1, "count({0})"),
    "count_if": Aggregate(1, 1, "count(CASE WHEN {0} THEN 1 END)"),
    "sum": Aggregate(1, 1, "sum({0})", "inner_total({a})"),
    "try_sum": Aggregate(1, 1, "sum({0})", "inner_try_total({a})"),
    "avg": _MEAN,
    "try_avg": _MEAN,
    "mean": _MEAN,
    "std": _ONE["stddev"],
    "every": _ONE["bool_and"],
    "some": _ONE["bool_or"],
    "any": _ONE["bool_or"],
    "max_by": Aggregate(2, 2, "arg_max_null({0}, {1})"),
    "min_by": Aggregate(2, 2, "arg_min_null({0}, {1})"),
    "any_value": Aggregate(1, 2, "first({0})"),
    "first": Aggregate(1, 2, "first({0})"),
    "first_value": Aggregate(1, 2, "first({0})"),
    "last": Aggregate(1, 2, "last({0})"),
    "last_value": Aggregate(1, 2, "last({0})"),
    "median": Aggregate(1, 1, "quantile_cont(CAST({0} AS DOUBLE), 0.5)"),
    "percentile": Aggregate(2, 2, "quantile_cont(CAST({0} AS DOUBLE), {1})"),
    "percentile_approx": _DISC,
    "approx_percentile": _DISC,
    "approx_count_distinct": Aggregate(1, 2, "count(DISTINCT {0})"),
    "collect_list": _LISTED,
    "array_agg": _LISTED,
    "collect_set": Aggregate(1, 1, "list(DISTINCT {0})", "coalesce({a}, [])", without_null=True),
    "skewness": Aggregate(1, 1, _SHAPE, "inner_skewness({a}, list_avg({a}))", without_null=True),
    "kurtosis": Aggregate(1, 1, _SHAPE, "inner_kurtosis({a}, list_avg({a}))", without_null=True),
    "string_agg": Aggregate(1, 2, "string_agg({0}, {1})"),
    "listagg": Aggregate(1, 2, "string_agg({0}, {1})"),
    "grouping": Aggregate(1, 1, "grouping({0})", "CAST({a} AS TINYINT)"),
    "grouping_id": Aggregate(0, 64, "grouping_id({0})"),
}
OF_NUMBERS: Final = frozenset(("sum", "try_sum", "avg", "try_avg", "mean"))
"""Aggregates for which Databricks casts texts to DOUBLE."""
WITHIN: Final = {
    "percentile_cont": "quantile_cont(CAST({0} AS DOUBLE), {1})",
    "percentile_disc": "quantile_disc({0}, {1})",
}
"""Aggregates over the ORDER BY expression of WITHIN GROUP."""
FIRST_OR_LAST: Final = frozenset(("first_value", "last_value", "first", "last", "any_value"))
"""Aggregates that take IGNORE NULLS, or ``true`` as a second argument."""
