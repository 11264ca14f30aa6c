"""Lists the supported functions of Databricks and their translation to DuckDB.

A function is listed after its results were compared with Spark's. Any other function is refused,
even if DuckDB has one of its name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mltables.dialect import macros

_SAME: Final = """
abs/1 asinh/1 acosh/1 atanh/1 atan/1 atan2/2 cbrt/1 cos/1 cosh/1 cot/1 degrees/1 exp/1 pi/0
radians/1 sin/1 sinh/1 tan/1 tanh/1 lower/1 upper/1 md5/1 sha1/1 translate/3 coalesce/1-99 nullif/2
greatest/2-99 least/2-99 hex/1 random/0
"""
_OTHER: Final = {
    "nvl": "coalesce({0}, {1})",
    "nvl2": "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END",
    "if": "CASE WHEN {0} THEN {1} ELSE {2} END",
    "iff": "CASE WHEN {0} THEN {1} ELSE {2} END",
    "isnull": "({0} IS NULL)",
    "isnotnull": "({0} IS NOT NULL)",
    "equal_null": "({0} IS NOT DISTINCT FROM {1})",
    "nullifzero": "nullif({0}, 0)",
    "zeroifnull": "coalesce({0}, 0)",
    "not": "(NOT {0})",
    "rand": "random()",
    "size": "CAST(cardinality({0}) AS INTEGER)",
    "cardinality": "CAST(cardinality({0}) AS INTEGER)",
    "array_size": "CAST(cardinality({0}) AS INTEGER)",
    "element_at": "inner_at({0}, {1}, TRY_CAST({1} AS BIGINT), cardinality({0}))",
    "ifnull": "coalesce({0}, {1})",
    "date": "spark_date({0})",
    "timestamp": "spark_timestamp({0})",
}
"""Templates of DuckDB SQL by the name of Databricks' function; ``{0}`` is the first argument."""

WINDOW: Final = {
    "row_number": "INTEGER",
    "rank": "INTEGER",
    "dense_rank": "INTEGER",
    "ntile": "INTEGER",
    "percent_rank": None,
    "cume_dist": None,
    "lag": None,
    "lead": None,
    "nth_value": None,
}
"""Functions that need OVER, with the type of the result where DuckDB's differs."""

OTHER_EACH_TIME: Final = ("random(", "uuid(")
"""Calls in DuckDB's SQL that have another value each time that they are computed."""

GENERATORS: Final = frozenset(("explode", "explode_outer", "posexplode", "posexplode_outer"))


class Simple(NamedTuple):
    """An SQL function that needs no special translation: its number of arguments, and a template of
    DuckDB SQL."""

    least: int
    most: int
    template: str | None
    """The template of DuckDB SQL; None for a call of DuckDB's function with the same name and
    arguments."""
    repeats: bool = False
    """Whether the template repeats an argument."""


def _same() -> dict[str, Simple]:
    functions = {}
    for text in _SAME.split():
        name, _, arity = text.partition("/")
        least, _, most = arity.partition("-")
        functions[name] = Simple(int(least), int(most or least), None)
    for name, template in _OTHER.items():
        count = next(n for n in range(4) if f"{{{n}}}" not in template)
        repeats = any(template.count(f"{{{n}}}") > 1 for n in range(count))
        functions[name] = Simple(count, count, template, repeats)
    return functions


SIMPLE: Final = _same()
CASTS: Final = {
    "string": "STRING",
    "int": "INT",
    "bigint": "BIGINT",
    "smallint": "SMALLINT",
    "tinyint": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
}
"""Functions that cast to the type of their name."""


def parameters(name: str) -> tuple[str, ...] | None:
    """Returns the names of the parameters of a Databricks function that a DuckDB macro implements
    (of the macro's first overload); None for any other function."""
    return macros.FUNCTIONS.get(name)
