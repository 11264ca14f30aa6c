"""Runs translated statements on the system tables of a test."""

from __future__ import annotations

from pathlib import Path

from mltables import statement_execution
from mltables.file_pruning import evaluate_bounds
from mltables.permitted_rows import row_sources
from mltables.statement_check import TranslatedStatement
from mltables.views import VIEWS


def answer_of(statement: TranslatedStatement, workspaces: list[str] | None, folder: Path) -> str:
    """Columns, types and sorted rows of a statement without parameters, for a caller who may read
    these workspaces (None: all); ``folder`` is made for the caller's rows."""
    folder.mkdir()
    views = {view: statement.reads[view] for view in VIEWS if view in statement.reads}
    wanted = evaluate_bounds(statement.bounds, {})
    sources = row_sources(statement.reads, workspaces, folder, wanted)
    with statement_execution.open_views(sources, views) as connection:
        answer = statement_execution.execute(connection, statement.sql, {})
    return repr((answer["columns"], answer["types"], sorted(map(repr, answer["rows"]))))
