"""Templates of DuckDB's SQL for the casts of Databricks, by target type: ``{0}`` stands for the
value."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

CASTS: Final = {
    exp.DType.TINYINT: "inner_tinyint({0})",
    exp.DType.SMALLINT: "inner_smallint({0})",
    exp.DType.INT: "inner_int({0})",
    exp.DType.BIGINT: "inner_bigint({0})",
    exp.DType.FLOAT: "CAST(inner_double({0}) AS FLOAT)",
    exp.DType.DOUBLE: "inner_double({0})",
    exp.DType.TEXT: "spark_string({0})",
    exp.DType.BOOLEAN: "inner_boolean({0})",
    exp.DType.DATE: "spark_date({0})",
    exp.DType.TIMESTAMPTZ: "spark_timestamp({0})",
}
NESTED: Final = "inner_text_of_value({0})"
"""The cast of a list, map or struct to a text."""
TRIED: Final = {
    **dict.fromkeys(
        (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        "inner_try_integer",
    ),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), "inner_try_double"),
    exp.DType.DECIMAL: "inner_try_decimal",
    exp.DType.BOOLEAN: "inner_try_boolean",
    exp.DType.DATE: "inner_try_date",
    exp.DType.TIMESTAMPTZ: "inner_try_time",
}
"""The macros that prepare a value for TRY_CAST."""
NULLS: Final = {exp.DType.TIMESTAMPTZ: "TIMESTAMPTZ", exp.DType.TEXT: "VARCHAR"}
"""DuckDB's type names for a NULL of a type, where they differ from Databricks' names."""
