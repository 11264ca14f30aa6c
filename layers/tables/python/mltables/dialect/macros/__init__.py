"""Functions of Databricks as DuckDB's macros: those that DuckDB has not, or with another meaning.

A macro ``spark_pmod`` is the function ``pmod`` of a statement; one whose name begins with
``inner_`` only serves others. Where a type decides, a macro asks ``typeof()``, which DuckDB
computes before it runs the query. Forms of a macro for several types are chosen well only where
DuckDB knows the type, which it does not of an aggregate: so there are few, and a wrong one must
fail or answer the same.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from mltables.dialect.macros import casts, collections, hashes, numbers, strings, times

_MODULES: Final = (casts, numbers, strings, times, collections, hashes)
_HEAD: Final = re.compile(r"CREATE MACRO (\w+)\((.*?)\) AS", re.DOTALL)
_USED: Final = re.compile(r"\b(?:spark|inner)_\w+")

DEFINITIONS: Final = {
    match[1]: text
    for module in _MODULES
    for text in map(str.strip, re.split(r";\n+", module.MACROS))
    if (match := _HEAD.match(text))
}
_NEEDED: Final = {
    name: frozenset(_USED.findall(text)) - {name} for name, text in DEFINITIONS.items()
}
"""The macros that each calls."""
FUNCTIONS: Final = {
    name.removeprefix("spark_"): tuple(
        part.split()[0] for part in match[2].split(",") if part.strip()
    )
    for name, text in DEFINITIONS.items()
    if name.startswith("spark_") and (match := _HEAD.match(text))
}
"""Names of parameters by the function of Databricks; of the first form where it has several."""


def settle(connection: duckdb.DuckDBPyConnection) -> None:
    """Lets arithmetic fail as Databricks' does: a division by zero is an error, not infinite."""
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = true")


def install(connection: duckdb.DuckDBPyConnection, sql: str, made: set[str] | None = None) -> None:
    """Makes the macros that a statement needs: all of them would take longer than most queries.

    Args:
        made: names of those that the connection has; more are added.
    """
    made = set() if made is None else made
    for name in _USED.findall(sql):
        _make(connection, name, made)


def _make(connection: duckdb.DuckDBPyConnection, name: str, made: set[str]) -> None:
    if name in made or name not in DEFINITIONS:
        return
    made.add(name)
    for other in _NEEDED[name]:
        _make(connection, other, made)
    text = DEFINITIONS[name].replace("CREATE MACRO", "CREATE OR REPLACE MACRO", 1)
    connection.execute(text)
