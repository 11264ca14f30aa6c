"""``make bench-traces``: measures the published questions about traces (``tests/e2e``) over a
million made traces (``many_traces.py``).

A question runs as at the server (``mltables/query_server.py``): one forked process prepares, a
second one runs the statement. The figures are the processor seconds of these processes. *Eight* is
an estimate for a machine with eight processors, where all but the preparation, the views and the
plan is shared by eight threads. A third process measures these: it only plans the statement.

With ``--restricted`` the caller may read the workspace of all rows, but not all workspaces. Then
the first process copies the rows, also with threads, so *eight* does not apply.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import many_traces
from mlcore.system_tables import storage
from mltables import query_memory, query_server, statement_execution
from mltables.dialect import macros
from mltables.permitted_rows import RowSource
from tests.e2e import published_questions, published_trace_questions

OF_TRACES: Final = ("tools", "spans", "roots", "verdicts")
"""The questions about traces in ``published_questions``, by the functions of their answers."""
SECONDS: Final = 120.0

Json = dict[str, Any]


class Usage(NamedTuple):
    """What a process used: processor seconds, and the most memory in MB; and its result."""

    seconds: float
    megabytes: float
    result: Json


class Measured(NamedTuple):
    """The processor seconds of a question."""

    prepare: float
    plan: float
    """Views and plan, which one thread makes."""
    statement: float
    """The process of the statement, with views and plan."""
    megabytes: float
    rows: int

    @property
    def eight(self) -> float:
        return self.prepare + self.plan + max(0.0, self.statement - self.plan) / 8


def questions() -> dict[str, str]:
    """Returns the published questions about traces: SQL by a short name."""
    found = {
        f"{question.answer.__name__} (list)": question.sql
        for question in published_questions.QUESTIONS
        if question.answer.__name__ in OF_TRACES and "asked" in question.sql
    }
    return found | {
        question.answer.__name__: question.sql for question in published_trace_questions.QUESTIONS
    }


def measured(sql: str, workspaces: list[str] | None) -> Measured:
    """Runs a statement as a query that may read these workspaces (None: all rows)."""
    request = {"sql": sql, "workspaces": workspaces, "seconds": SECONDS, "starting": SECONDS}
    with tempfile.TemporaryDirectory(dir=os.environ["SYSTEM_TABLES_SCRATCH"]) as folder:
        prepared = _forked(lambda: statement_execution.prepare_rows(request, Path(folder)))
        plan = prepared.result
        if "error" in plan:
            raise SystemExit(plan["error"])
        planned = _forked(lambda: _plan(plan))
        ran = _forked(lambda: statement_execution.run_statement(request, plan))
        if "error" in ran.result:
            raise SystemExit(ran.result["error"])
    rows = len(ran.result["rows"])
    return Measured(prepared.seconds, planned.seconds, ran.seconds, ran.megabytes, rows)


def _plan(plan: Json) -> Json:
    sources = [RowSource.of_json(source) for source in plan["sources"]]
    connection = statement_execution.open_views(sources, plan["views"], plan["sql"])
    macros.create_macros(connection, plan["sql"])
    connection.execute(f"EXPLAIN {plan['sql']}", plan["parameters"])
    return {}


def _forked(act: Callable[[], Json]) -> Usage:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as file:
                file.write(json.dumps(act()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        result = file.read()
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"a process ended with {os.waitstatus_to_exitcode(status)}")
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, json.loads(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the tables; written if it does not exist")
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--restricted", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=query_memory.here().threads)
    given = parser.parse_args()
    limits = query_memory.here()._replace(threads=given.threads)
    setattr(query_memory, "here", lambda: limits)  # noqa: B010 -- mypy refuses an assignment
    os.environ[storage.FOLDER] = str(given.folder)
    os.environ.setdefault("SYSTEM_TABLES_SCRATCH", tempfile.gettempdir())
    if not given.folder.exists():
        many_traces.write(given.folder, given.traces)
    workspaces = [many_traces.WORKSPACE] if given.restricted else None
    query_server.load_before_fork()
    print("| question | prepare | views, plan | statement | eight | MB | rows |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, sql in questions().items():
        if given.only and name not in given.only:
            continue
        best = min((measured(sql, workspaces) for _ in range(given.times)), key=lambda m: m.eight)
        print(
            f"| {name} | {best.prepare:.3f} | {best.plan:.3f} | {best.statement:.2f} "
            f"| {best.eight:.3f} | {best.megabytes:.0f} | {best.rows} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
