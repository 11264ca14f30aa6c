"""Identifies the versions of the tables that a statement reads: the same statement over the same
versions has the same result, unless it calls a function that returns something else each time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from typing import Final

from mltables import time_travel
from mltables.opened_tables import OpenedTables
from mltables.table_columns import Table
from mltables.table_definitions import TABLES_BY_NAME
from mltables.time_travel import Moment
from mltables.views import VIEWS

CHANGING_CALLS: Final = frozenset(
    (
        *("random", "now", "current_date", "current_timestamp"),
        *("spark_now", "spark_curdate", "spark_current_date", "spark_current_timestamp"),
        *("spark_unix_timestamp", "uuid", "spark_uuid"),
    )
)
"""Functions and macros of DuckDB, as they are named in generated SQL, whose results depend on the
time or on chance."""

_WORD: Final = re.compile(r"\w+")


def is_repeatable(sql: str) -> bool:
    """Whether a statement, given in DuckDB's SQL, has the same result each time that it reads the
    same rows. False if it mentions a name of :data:`CHANGING_CALLS`, also as the name of a
    column."""
    return CHANGING_CALLS.isdisjoint(_WORD.findall(sql.lower()))


def versions_of(views: Collection[str], moments: Sequence[Moment], opened: OpenedTables) -> str:
    """Returns a digest of the versions, current or past, of the system tables that a SQL statement
    reads. It changes if a table is removed and created again.

    Args:
        views: what the statement reads, as keys of ``TranslatedStatement.reads``.
        moments: the times or versions of past tables; see :func:`permitted_rows.row_sources`.
        opened: opens the tables.

    Raises:
        StatementRefused: a table has no version for one of the moments.
    """
    versions = []
    for view in sorted(set(views) - VIEWS.keys()):
        name, position = time_travel.table_of(view)
        if position is None:
            versions.append(_version(opened, TABLES_BY_NAME[name], None))
        else:
            versions.append(_version(opened, TABLES_BY_NAME[name], moments[position]))
            # Rows of the past are returned for entities that still exist.
            versions.append(_version(opened, time_travel.ENTITIES[name][0], None))
    return hashlib.sha256(json.dumps(versions).encode()).hexdigest()


def _version(opened: OpenedTables, table: Table, moment: Moment | None) -> tuple[str, str, int]:
    delta = opened.at(table, moment)
    location = opened.lake.uri(table.name)
    if delta is None:
        return location, "", -1
    return location, str(delta.metadata().id), delta.version()
