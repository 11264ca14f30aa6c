"""The work of the two processes of a SQL query, which ``mltables/query_server.py`` starts.

The first process prepares the rows that the caller may read; the second one runs the caller's
statement on them. The operating system ends each process at a time limit, and limits the memory of
the second one (``query_memory.py``).
"""

from __future__ import annotations

import contextlib
import re
import resource
import signal
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import duckdb

from mltables import (
    aggregated_lists,
    permitted_rows,
    query_memory,
    result_encoding,
    span_attribute_columns,
    statement_check,
    table_versions,
    time_travel,
    trace_metadata_columns,
    trace_view,
    unjoined_lists,
)
from mltables.column_cache import NoRoomForColumns
from mltables.column_pruning import all_columns
from mltables.dialect import error_messages, macros
from mltables.duckdb_connection import connect
from mltables.file_pruning import evaluate_bounds
from mltables.opened_tables import OpenedTables
from mltables.permitted_rows import RowSource
from mltables.table_definitions import AUDIT
from mltables.views import VIEWS

_WORD: Final = re.compile(r"\w+")
ROWS: Final = 10_000
BYTES: Final = 4 << 20
_REWRITTEN: Final = (
    *(span_attribute_columns.PREFIX, trace_metadata_columns.PREFIX, trace_metadata_columns.VIEW),
    *(trace_view.LENGTH, unjoined_lists.ELEMENT, aggregated_lists.VALUE),
)
"""Names, or parts of names, in the SQL of statements that were rewritten."""
RUN_AGAIN: Final = "again"
"""A member of the JSON result of a statement that :func:`has_to_run_again`."""
UNCHANGED: Final = "unchanged"
"""A member of the JSON result of :func:`prepare_rows` if the caller has the result already."""


def _given_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of parameters by the names that the translated SQL has for them. Raises
    StatementRefused if two parameters have one such name."""
    given: dict[str, Any] = {}
    for name, value in parameters.items():
        known = re.sub(r"\.(min|max)$", r"_\1", name)  # of :range.min
        if known in given:
            raise statement_check.StatementRefused(f"The parameter {known!r} has two values.")
        given[known] = value
    return given


def prepare_rows(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Checks and translates the SQL statement, and prepares the rows that the caller may read.
    Returns the statement in DuckDB's SQL, its parameters, the sources of its rows, the views that
    it reads and the digest of the versions of its tables (None if the request has no ``kept``, or
    if the statement has another result each time); or ``{"error": message}``; or ``{"unchanged":
    true}`` if this digest is the request's ``kept``.

    Args:
        folder: the folder in which the rows of a restricted caller are written.
    """
    try:
        # Parsing counts against the statement's own limit of time, reading files does not.
        _set_deadline(float(request["seconds"]))
        whole = bool(request.get("whole"))
        passed = _translate(request, from_maps=whole)
        given = _given_parameters(request.get("parameters") or {})
        named = passed.parameters.union(*(as_of.parameters for as_of in passed.as_of))
        missing = sorted(named - given.keys())
        if missing:
            raise statement_check.StatementRefused(f"The parameter {missing[0]!r} has no value.")
        reads = passed.reads
        if whole:
            reads = all_columns(reads)
        _set_deadline(float(request["starting"]))
        values = {name: given[name] for name in passed.parameters}
        wanted = evaluate_bounds(passed.bounds, values)
        views = {name: sorted(reads[name]) for name in VIEWS if name in reads}
        moments = time_travel.evaluate(
            passed.as_of, given, reads_all=request.get("workspaces") is None
        )
        opened = OpenedTables()
        versions = None
        if "kept" in request and table_versions.is_repeatable(passed.sql):
            versions = table_versions.versions_of(reads, moments, opened)
            if versions == request["kept"]:
                return {UNCHANGED: True}
        permitted = {AUDIT.name: request.get("audited", request.get("workspaces"))}
        sources = permitted_rows.row_sources(
            reads, request.get("workspaces"), folder, wanted, permitted, moments, opened
        )
    except (statement_check.StatementRefused, NoRoomForColumns) as refused:
        return {"error": str(refused)}
    except duckdb.Error as error:
        if "space" in str(error) or isinstance(error, duckdb.OutOfMemoryException):
            return {"error": str(NoRoomForColumns())}
        raise
    return {
        "sql": passed.sql,
        "parameters": values,
        "sources": sources,
        "views": views,
        "versions": versions,
    }


def _translate(request: dict[str, Any], *, from_maps: bool) -> statement_check.TranslatedStatement:
    """Translates the statement of a request. Raises StatementRefused also if that takes too much
    memory: the process that prepares rows has no other limit of memory."""
    try:
        with query_memory.limited_address_space(query_memory.TRANSLATING):
            return statement_check.translate(
                str(request["sql"]), request.get("casts") or {}, from_maps=from_maps
            )
    except MemoryError:
        raise statement_check.StatementRefused("The statement is too long.") from None


def run_statement(request: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Runs the prepared SQL statement. Returns its encoded result
    (``mltables/result_encoding.py``), or ``{"error": message}``.

    Args:
        plan: the result of :func:`prepare_rows`.
    """
    try:
        sources = [RowSource.of_json(source) for source in plan["sources"]]
        connection = open_views(sources, plan["views"], plan["sql"])
        # From here on the caller's statement runs. It can neither write files nor read other files.
        _restrict_resources()
        _set_deadline(float(request["seconds"]))
        return execute(connection, plan["sql"], {**request, "parameters": plan["parameters"]})
    except result_encoding.TooLarge as refused:
        return {"error": str(refused)}
    except (duckdb.Error, RuntimeError, MemoryError) as error:
        again = {RUN_AGAIN: True} if has_to_run_again(plan["sql"], error) else {}
        return {**again, "error": error_text(error)}


def has_to_run_again(sql: str, error: Exception) -> bool:
    """Whether a SQL statement that failed is run again, with all columns of its tables and without
    rewritten lookups and joins. This is so if DuckDB could not bind it, as with an unknown name,
    or if it was rewritten: then its error may name a derived column, or come from a row that the
    original statement would have dropped first. A rewritten statement that needed too much memory
    is not run again."""
    if isinstance(error, duckdb.BinderException):
        return True
    is_rewritten = any(name in sql for name in _REWRITTEN)
    return is_rewritten and not _is_of_memory(error)


def execute(
    connection: duckdb.DuckDBPyConnection, sql: str, request: dict[str, Any]
) -> dict[str, Any]:
    """Runs an SQL statement and returns its result in the format that the request asks for.

    Raises:
        TooLarge, duckdb.Error, RuntimeError, MemoryError: the statement failed.
    """
    values = request.get("parameters") or {}
    most = int(request.get("bytes") or BYTES)
    form = request.get("format")
    macros.create_macros(connection, sql)
    if form == "arrow":
        return result_encoding.encode_arrow(connection.sql(sql, params=values), most)
    cursor = connection.execute(sql, values)
    if form == "csv":
        return result_encoding.encode_csv(cursor, most)
    return result_encoding.encode_json(cursor, int(request.get("rows") or ROWS), most)


def open_views(
    sources: Sequence[RowSource],
    views: Mapping[str, Collection[str]] = MappingProxyType({}),
    sql: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """Returns a connection to a new DuckDB database that has views of the sources (files with
    rows) and, over these, views of ``views.py``. The database can read only the files of the
    sources, and does not spill to disk.

    Args:
        views: for each view of ``views.py`` to create, by its name: the columns that it has.
        sql: the statement. The view of a source is left out if neither the statement nor the
            definition of a view in ``views`` mentions it; None means that all are needed.
    """
    limits = query_memory.here()
    connection = connect(None, limits.text, limits.threads)
    macros.set_arithmetic_errors(connection)
    # For a condition on a struct's member with ORDER BY … LIMIT, this optimizer of DuckDB 2.0.0
    # makes a plan that fails: "Vector::Reference used on vector of different type".
    disabled = ["late_materialization"] if any(map(_reads_structs, sources)) else []
    if sql is not None and "random(" in sql:
        # It lifts a condition on a random number over joins: each joined row would be sampled.
        disabled.append("filter_pullup")
    if disabled:
        connection.execute(f"SET disabled_optimizers = '{','.join(disabled)}'")
    connection.execute(f"CREATE SCHEMA {statement_check.SCHEMA}")
    definitions = {
        name: VIEWS[name].definition(statement_check.SCHEMA, columns)
        for name, columns in views.items()
    }
    words = None if sql is None else set(_WORD.findall(" ".join((sql, *definitions.values()))))
    for source in sources:
        for name, files in source.variables().items():
            connection.execute(f"SET VARIABLE {name} = $files", {"files": files})
        for view, shown in source.views():
            if words is None or view in words:
                connection.execute(
                    f"CREATE VIEW {statement_check.SCHEMA}.{view} AS "
                    f"SELECT {', '.join(shown)} FROM {source.relation(from_variables=True)}"
                )
    for name, definition in definitions.items():
        connection.execute(f"CREATE VIEW {statement_check.SCHEMA}.{name} AS {definition}")
    paths = [path for source in sources for path in source.paths]
    connection.execute("SET allowed_paths = $paths", {"paths": paths})
    connection.execute(
        "SET python_enable_replacements = false; SET enable_external_access = false; "
        "SET lock_configuration = true"
    )
    return connection


def _reads_structs(source: RowSource) -> bool:
    return any(
        name in source.columns and kind.startswith("STRUCT(") and not kind.endswith("[]")
        for name, kind, *_ in source.table.columns
    )


def _set_deadline(seconds: float) -> None:
    """Makes the operating system end this process after these seconds, whatever its threads do.
    0 removes the limit."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _restrict_resources() -> None:
    with contextlib.suppress(OSError):
        # A machine without free memory ends this process before those of its users.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = query_memory.address_space()
    if size is None:  # DuckDB's own limit and the deadline remain
        return
    most = size + query_memory.here().address_space
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def error_text(error: Exception) -> str:
    """Returns the message for the caller: the first line of the SQL engine's error, in Databricks'
    words; or, if memory ran out, the limit. Later lines, which may name files of this machine, are
    dropped."""
    if _is_of_memory(error):
        return (
            f"The query needs more than the {query_memory.here().text} of memory that it may have."
        )
    text = str(error).split("\n\nLINE", maxsplit=1)[0].split("\n", maxsplit=1)[0]
    return (
        error_messages.databricks_text(text.replace(f'"{statement_check.SCHEMA}".', ""))[:1000]
        or type(error).__name__
    )


def _is_of_memory(error: Exception) -> bool:
    return isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "alloc" in str(error)
