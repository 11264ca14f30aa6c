"""Time travel: ``FROM runs_latest TIMESTAMP AS OF '…'`` reads a table as it was.

A past version of a table is read with the rights of today, and brings back nothing that was
removed: a row is returned only if the entity that it is about (a run, a trace, an assessment, an
experiment, a model and so on) still has a row in the table of today, in a workspace that the caller
may read now. So neither the removal of a run nor its move to another workspace can be circumvented,
and values that changed come back as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import duckdb
from deltalake import DeltaTable
from sqlglot import exp

from mltables.dialect import allowed_syntax, macros, sql_generator
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.syntax_nodes import find_all
from mltables.duckdb_connection import connect
from mltables.entity_tables import OF_ENTITIES
from mltables.file_pruning import is_constant
from mltables.table_columns import Table
from mltables.table_definitions import (
    ASSESSMENTS,
    AUDIT,
    EXPERIMENTS,
    HISTORY,
    KEPT_HOURS,
    RUNS,
    SPANS,
    TRACES,
)
from mltables.views import VIEWS

HOURS: Final = KEPT_HOURS - 1
"""How long ago a table may be read. Files of a version stay an hour longer, so that they do not
vanish under a query."""
MOST: Final = 4
"""Most different ``AS OF`` in a statement: each table that it reads so is copied for the query."""

_INFIX: Final = "_as_of_"
_MARK: Final = "as_of"

ENTITIES: Final[Mapping[str, tuple[Table, tuple[str, ...]]]] = {
    EXPERIMENTS.name: (EXPERIMENTS, ("experiment_id",)),
    RUNS.name: (RUNS, ("run_id",)),
    HISTORY.name: (RUNS, ("run_id",)),
    TRACES.name: (TRACES, ("trace_id", "experiment_id")),
    ASSESSMENTS.name: (ASSESSMENTS, ("trace_id", "assessment_id", "experiment_id")),
    SPANS.name: (TRACES, ("trace_id", "experiment_id")),
    # The time of creation distinguishes an entity from a removed one with the same id.
    **{table.name: (table, (*table.identity.split(", "), "create_time")) for table in OF_ENTITIES},
}
"""By table: the table whose current rows say which entities exist and in which workspace, and the
columns that identify the entity."""


class AsOf(NamedTuple):
    """The constant after ``AS OF``, a time or the number of a version, as SQL for DuckDB."""

    kind: str
    """``TIMESTAMP`` or ``VERSION``."""
    sql: str
    parameters: frozenset[str]


class Moment(NamedTuple):
    """The point in time, or the number of the version, at which an SQL statement reads a table. One
    of the two is None."""

    time: datetime | None
    version: int | None


def take_past_tables(query: exp.Query) -> list[AsOf]:
    """Removes each ``AS OF`` from the tables of a statement. Returns each different ``AS OF`` once,
    and marks each of these tables with the position of its ``AS OF`` in this list. Raises
    StatementRefused if one is not a constant."""
    versions: list[AsOf] = []
    for table in list(find_all(query, exp.Table)):
        version = table.args.get("version")
        if version is None:
            continue
        table.set("version", None)
        value = version.expression
        allowed_syntax.check(value)
        if version.args.get("kind") != "AS OF" or not is_constant(value, now=True):
            raise StatementRefused(
                "AS OF takes a constant time or version, such as '2026-01-31 12:00'."
            )
        names = frozenset(node.name for node in find_all(value, exp.Placeholder))
        if not all(name.isidentifier() for name in names):
            raise StatementRefused("Parameters are written :name.")
        as_of = AsOf(str(version.this).upper(), sql_generator.generate_sql(value.copy()), names)
        if as_of not in versions:
            versions.append(as_of)
        table.meta[_MARK] = versions.index(as_of)
    return versions


def is_past(table: exp.Table) -> bool:
    return _MARK in table.meta


def view_name(table: exp.Table, name: str) -> str:
    """Returns the name of the view that a table of an SQL statement reads: its own name, or that of
    the past version it asks for. Raises StatementRefused if the table has no past versions."""
    if not is_past(table):
        return name
    if name in VIEWS and AUDIT not in VIEWS[name].tables:
        *others, last = (below.name for below in VIEWS[name].tables)
        raise StatementRefused(
            f"{name} is a view and has no past: read {', '.join(others)} and {last} AS OF."
        )
    if name == AUDIT.name or name in VIEWS:
        raise StatementRefused(
            f"{name} only grows and has no past: compare event_time or insert_time."
        )
    return f"{name}{_INFIX}{table.meta[_MARK]}"


def table_of(view: str) -> tuple[str, int | None]:
    """Returns the system table that a DuckDB view shows, and the position of the view's ``AS OF``
    in the list of :func:`take_past_tables`; None as the position for the table's current version.
    """
    name, _, position = view.partition(_INFIX)
    return name, int(position) if position else None


def evaluate(
    as_ofs: Sequence[AsOf], parameters: Mapping[str, Any], *, reads_all: bool
) -> list[Moment]:
    """Computes the values of ``AS OF`` and checks that times are within the retention of past
    versions; :func:`travel` checks the numbers of versions.

    Args:
        parameters: the values of the statement's parameters.
        reads_all: whether the caller may read all rows. Other callers may only give times: the
            numbers of versions would show how often other workspaces change.

    Raises:
        StatementRefused: a value is no time or number, or is a time in the future or too long ago;
            there are more than :data:`MOST` values; or the caller may not give a version.
    """
    if len(as_ofs) > MOST:
        raise StatementRefused(f"A statement reads at most {MOST} past versions.")
    if not as_ofs:
        return []
    with connect(None) as connection:
        return [_moment(connection, as_of, parameters, reads_all=reads_all) for as_of in as_ofs]


def _moment(
    connection: duckdb.DuckDBPyConnection,
    as_of: AsOf,
    parameters: Mapping[str, Any],
    *,
    reads_all: bool,
) -> Moment:
    values = {name: parameters[name] for name in as_of.parameters}
    is_version = as_of.kind == "VERSION"
    if is_version and not reads_all:
        raise StatementRefused(
            "VERSION AS OF needs the right to read all rows: use TIMESTAMP AS OF."
        )
    macros.create_macros(connection, as_of.sql)
    wanted = f"({as_of.sql})::{'BIGINT' if is_version else 'TIMESTAMPTZ'}"
    try:
        ((value,),) = connection.execute(f"SELECT {wanted}", values).fetchall()
    except (duckdb.Error, RuntimeError, ValueError, OverflowError):
        value = None
    if value is None:
        raise StatementRefused(f"{as_of.kind} AS OF is no {'number' if is_version else 'time'}.")
    if is_version:
        return Moment(None, int(value))
    now = datetime.now(UTC)
    if value > now:
        raise StatementRefused("TIMESTAMP AS OF is in the future.")
    if value < now - timedelta(hours=HOURS):
        raise _too_old()
    return Moment(value, None)


def _too_old() -> StatementRefused:
    return StatementRefused(
        f"Past versions of tables can be read for {HOURS} hours; AS OF is older."
    )


def gone() -> StatementRefused:
    """Returns the error for an SQL statement that reads a table's past version whose files were
    deleted."""
    return StatementRefused(
        "A past version of a table cannot be read any more: its files were deleted."
    )


def travel(delta: DeltaTable, moment: Moment) -> None:
    """Switches an open Delta table to the version that was current at a time, or to the version
    with a number. Raises StatementRefused if no version has this number, or if it was replaced more
    than :data:`HOURS` hours ago."""
    if moment.time is not None:
        delta.load_as_version(moment.time)
        return
    latest, version = delta.version(), moment.version or 0
    if not 0 <= version <= latest:
        raise StatementRefused(f"The latest version is {latest}; VERSION AS OF names no version.")
    delta.load_as_version(datetime.now(UTC) - timedelta(hours=HOURS))
    if version < delta.version():
        raise _too_old()
    delta.load_as_version(version)
