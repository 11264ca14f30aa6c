"""Compares the system tables' published rows of entities outside of experiments with the DynamoDB
table; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final

import duckdb

from mlcore.system_tables.entity_kinds import EntityRef
from mlcore.system_tables.entity_sources import ROOTS, RootSource
from mltables import entity_staging
from mltables.entity_publishing import tables_of
from mltables.table_columns import Table

TOGETHER: Final = 500

Problem = tuple[str, str, str]
"""One difference: ``missing``, ``different`` or ``surplus``; the table; and the ids of the row."""


def differences(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Problem]:
    """Yields each difference between the published rows of registered models, their versions,
    evaluation datasets, their records and jobs, and these entities in DynamoDB.

    Args: connection: has a view of each system table, with all stored columns.
    """
    for kind in ROOTS:
        tables = tables_of(kind)
        for table in tables:
            yield from _repeated(connection, table)
            columns = table.identity.split(", ")
            entity_staging.load_ids(connection, f"seen_{table.name}", table, columns, [])
        refs = iter(dict.fromkeys(kind.listed()))
        while some := list(islice(refs, TOGETHER)):
            yield from _of_some(connection, kind, some, folder)
        for table in tables:
            yield from _surplus(connection, table)


def _of_some(
    connection: duckdb.DuckDBPyConnection, kind: RootSource, refs: Sequence[EntityRef], folder: Path
) -> Iterator[Problem]:
    """Yields the differences of some roots and of their parts."""
    root, by_id = tables_of(kind)[-1], {ref[0]: ref for ref in refs}
    for batch in entity_staging.batches(connection, root, kind.find(refs, {}), folder):
        yield from _compared(connection, root)
        if kind.part:
            part = tables_of(kind)[0]
            entity_staging.load_roots(connection, "new_rows", root.identity, kind.part.inherited)
            rows = chain.from_iterable(kind.part.of_root(by_id[row[0]]) for row in batch)
            for _ in entity_staging.batches(connection, part, rows, folder, kind.part.inherited):
                yield from _compared(connection, part)


def _compared(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Problem]:
    """Yields the differences between the rows in ``new_rows`` and their published rows."""
    connection.execute(f"INSERT INTO seen_{table.name} SELECT {table.identity} FROM new_rows")
    rows = connection.execute(
        f"""
        SELECT {_shown(table, "n.")}, p.account_id IS NULL
        FROM (SELECT {table.stored} FROM new_rows) n
        LEFT JOIN (SELECT {table.stored} FROM {table.name}) p USING ({table.identity})
        WHERE n IS DISTINCT FROM p ORDER BY ALL
        """
    ).fetchall()
    for name, missing in rows:
        yield "missing" if missing else "different", table.name, name


def _surplus(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Problem]:
    rows = connection.execute(
        f"SELECT {_shown(table)} FROM {table.name} "
        f"ANTI JOIN seen_{table.name} USING ({table.identity}) ORDER BY ALL"
    ).fetchall()
    for (name,) in rows:
        yield "surplus", table.name, name


def _repeated(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Problem]:
    rows = connection.execute(
        f"SELECT {_shown(table)} FROM {table.name} GROUP BY {table.identity} HAVING count(*) > 1"
    ).fetchall()
    for (name,) in rows:
        yield "surplus", table.name, name


def _shown(table: Table, prefix: str = "") -> str:
    """Returns an expression for the ids of a row as one text."""
    return " || ' ' || ".join(f"{prefix}{column}" for column in table.identity.split(", "))
