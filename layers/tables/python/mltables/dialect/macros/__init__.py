"""DuckDB macros for functions of Databricks that DuckDB lacks or defines differently.

The macro ``spark_pmod`` implements the function ``pmod``; a macro whose name begins with ``inner_``
serves other macros and the generated SQL, and cannot be called by a statement. A macro that depends
on types uses ``typeof()``, which DuckDB computes before it runs the query. Few macros are
overloaded by type: DuckDB chooses the right overload only if it knows the type, which it does not
for an aggregate. A wrong choice must fail or give the same result.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from mltables.dialect.macros import (
    casts,
    collections,
    hashes,
    json,
    numbers,
    strings,
    times,
)

_MODULES: Final = (casts, numbers, strings, times, collections, hashes, json)
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
"""Names of the macros that each macro calls."""
FUNCTIONS: Final = {
    name.removeprefix("spark_"): tuple(
        part.split()[0] for part in match[2].split(",") if part.strip()
    )
    for name, text in DEFINITIONS.items()
    if name.startswith("spark_") and (match := _HEAD.match(text))
}
"""Parameter names by function of Databricks, of the first overload."""

COMMON: Final = "spark_timestamp spark_date_trunc spark_substring inner_total inner_mean"
"""Macros that many statements need: to compare times, to group by them and to add up numbers."""
_created_before_fork: Final[set[str]] = set()


def may_fail(sql: str) -> bool:
    """Whether a macro that some SQL calls, itself or by another macro, may raise an error with
    ``inner_fail()``."""
    waiting, seen = [name for name in _USED.findall(sql) if name in DEFINITIONS], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _NEEDED[name] & DEFINITIONS.keys()
    return any("inner_fail(" in DEFINITIONS[name] for name in seen)


def set_arithmetic_errors(connection: duckdb.DuckDBPyConnection) -> None:
    """Configures a connection so that arithmetic fails as in Databricks: a division by zero is an
    error, not infinity."""
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = true")


def create_macros(
    connection: duckdb.DuckDBPyConnection, sql: str, made: set[str] | None = None
) -> None:
    """Creates those DuckDB macros that a statement needs. Creating all would take longer than most
    queries.

    Args:
        made: names of the macros that the connection has already. New ones are added. None for a
            new connection of ``duckdb_connection.connect``.
    """
    made = set(_created_before_fork) if made is None else made
    for name in _USED.findall(sql):
        _make(connection, name, made)


def create_before_fork(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates the macros of ``COMMON`` in the database that processes have after a fork: there they
    would be a fifth of the processor time of a small query."""
    create_macros(connection, COMMON, _created_before_fork)


def _make(connection: duckdb.DuckDBPyConnection, name: str, made: set[str]) -> None:
    if name in made or name not in DEFINITIONS:
        return
    made.add(name)
    for other in _NEEDED[name]:
        _make(connection, other, made)
    text = DEFINITIONS[name].replace("CREATE MACRO", "CREATE OR REPLACE MACRO", 1)
    connection.execute(text)
