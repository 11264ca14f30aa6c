"""One step of the publisher for traces: makes rows from landing objects (files of changes to
publish) and DynamoDB items, and commits ``traces``, ``assessments`` and ``spans``. ``publisher``
decides when to run a step and whether to repeat it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb
from deltalake.exceptions import CommitFailedError

from mlcore.repos.traces.traces import StoredTrace
from mlcore.system_tables import experiment_source, span_source, trace_landing, trace_source
from mlcore.system_tables.experiment_source import Stored
from mltables import row_removal, span_staging, trace_staging
from mltables.column_cache import NoRoomForColumns
from mltables.lake import Lake, NoRoom
from mltables.row_replacement import replace_rows
from mltables.snapshot import Snapshot, quoted
from mltables.table_definitions import ASSESSMENTS, OF_TRACES, SPANS, TRACES
from mltables.unpublishable import UNPUBLISHABLE
from mltables.writable_table import WritableTable

TRACES_TOGETHER: Final = 2000
"""Most traces that one commit changes."""

_logger = logging.getLogger("mlcore.system_tables")

_BY_TIME: Final = "first_time, experiment_id, trace_id"
"""The order in which traces are published. Ids are random, so that traces in the order of their ids
would write to all days in each commit."""
_OWNER: Final = "experiment_id, trace_id"
"""The columns that identify a trace."""
_LARGE: Final = (
    *("new_traces", "new_assessments", "new_spans", "entries"),
    *("old_rows", "changed_rows", "replaced", "partition_rows", "pieces"),
)
"""Temporary tables that may hold large rows."""
STAGED: Final = {
    TRACES.name: "new_traces",
    ASSESSMENTS.name: "new_assessments",
    SPANS.name: "new_spans",
}
"""By system table: the staged table with its new rows."""


class TraceStep:
    """One step of the system tables' publisher for traces, on a snapshot of each trace table."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshots: dict[str, Snapshot],
        folder: Path,
    ) -> None:
        self._connection, self._folder = connection, folder
        self._tables = [
            WritableTable(connection, lake, snapshots[table.name], folder) for table in OF_TRACES
        ]
        self._with_spans: list[span_source.SpanTrace] = []
        """The traces of the current part whose spans are to be read."""

    def run(self) -> int:
        """Publishes the changed traces that ``trace_staging.load_landed`` has loaded into temporary
        tables. Returns the number of traces that were written or removed.

        Raises:
            CommitFailedError: another publisher committed first, or an experiment was removed or
                moved to another workspace meanwhile; the caller repeats the step.
        """
        trace_keys = self._connection.execute(
            f"SELECT experiment_id, trace_id FROM named_traces ORDER BY {_BY_TIME}"
        ).fetchall()
        known = experiment_source.find_experiments(
            sorted({experiment_id for experiment_id, _ in trace_keys})
        )
        self._connection.execute("CREATE TEMP TABLE known_experiments (experiment_id VARCHAR)")
        for experiment_id in known:
            self._connection.execute("INSERT INTO known_experiments VALUES (?)", [experiment_id])
        changed = 0
        for at in range(0, len(trace_keys), TRACES_TOGETHER):
            changed += self._publish_fitting(at, trace_keys[at : at + TRACES_TOGETHER], known)
        for table in self._tables:
            table.finish_step()
        self._check_workspaces(known)
        return changed

    def _publish_fitting(
        self, at: int, trace_keys: Sequence[tuple[str, str]], known: dict[str, Stored]
    ) -> int:
        """Publishes traces, given by their ids and their position among all traces of the step. If
        they do not fit into memory together, or one has a value that cannot be a row's, publishes
        each half. A trace that cannot be published alone is left to a later step: its published
        rows stay as they are."""
        stored_traces = trace_source.find_traces(trace_keys, known)
        try:
            trace_staging.load_traces(
                self._connection, self._collecting_spans(stored_traces), self._folder
            )
            return self._publish_part(at, len(trace_keys))
        except UNPUBLISHABLE as error:
            for name in _LARGE:
                self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            if len(trace_keys) == 1:
                self._defer(at, error)
                return 0
        half = len(trace_keys) // 2
        return self._publish_fitting(at, trace_keys[:half], known) + self._publish_fitting(
            at + half, trace_keys[half:], known
        )

    def _defer(self, at: int, error: Exception) -> None:
        """Lands a trace, given by its position among all traces of the step, for the next step that
        retries deferred traces."""
        ((experiment_id, trace_id, gone),) = self._connection.execute(
            f"SELECT experiment_id, trace_id, gone FROM named_traces ORDER BY {_BY_TIME} "
            f"LIMIT 1 OFFSET {at}"
        ).fetchall()
        _logger.error("trace %s cannot be published and is deferred: %r", trace_id, error)
        trace_landing.defer(experiment_id, trace_id, is_deleted=gone)

    def _publish_part(self, at: int, traces: int) -> int:
        """Commits the traces in ``new_traces``, and removes the rows of traces that a request has
        deleted. Keeps the rows of traces that DynamoDB lacks for another reason: they expired, or
        the stream record of their deletion has not arrived."""
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE part AS
            SELECT * FROM named_traces ORDER BY {_BY_TIME}
            LIMIT {traces} OFFSET {at};
            CREATE OR REPLACE TEMP TABLE read_traces AS
            SELECT experiment_id, trace_id FROM new_traces;
            CREATE OR REPLACE TEMP TABLE decided AS
            SELECT experiment_id, trace_id, anywhere FROM part
            WHERE gone OR experiment_id NOT IN (SELECT experiment_id FROM known_experiments)
               OR (experiment_id, trace_id) IN (SELECT (experiment_id, trace_id) FROM new_traces)
            """
        )
        self._merge_times_of_expired()
        self._note_lost()
        changed = [self._replace(table) for table in self._tables if table.table is not SPANS]
        self._replace_spans()
        return changed[0]

    def _replace(self, table: WritableTable) -> int:
        """Replaces the rows of the traces in ``decided``.

        A trace whose time changed more than once may have two rows for a while: if the stream
        record of its last change arrives before the others, its first time is not known yet. The
        later records contain that time, and the old row is removed then.
        """
        new = STAGED[table.table.name]
        try:
            return replace_rows(self._connection, table, _OWNER, new, self._file_condition(table))
        except NoRoom as error:
            if not self._has("decided WHERE anywhere"):
                raise
            # Nothing is committed yet. The files at the named times may fit.
            _tell_of_room(table, error)
            return replace_rows(self._connection, table, _OWNER, new, self._at_times(table))

    def _file_condition(self, table: WritableTable) -> str:
        """Returns an SQL condition on the statistics of a file, true for every file that holds rows
        of the traces in ``decided``. If the disk has no space for the ids of the files, it is true
        only for the files at the named times: a publication that stops would stop all later
        ones."""
        maybe = self._at_times(table)
        if self._has("decided WHERE anywhere"):
            try:
                held = self._held(table, "(SELECT * FROM decided WHERE anywhere)")
            except NoRoomForColumns as error:
                _tell_of_room(table, error)
            else:
                maybe = f"({maybe}) OR {held}"
        return maybe

    def _at_times(self, table: WritableTable) -> str:
        """Returns an SQL condition that selects the files that may hold rows of the traces in
        ``decided`` with one of the named times."""
        return f"{table.overlapping('decided', 'experiment_id')} AND ({self._time_condition()})"

    def _held(self, table: WritableTable, named: str) -> str:
        """Returns an SQL condition that selects the files that hold rows of the traces in a staged
        table, at any time. Raises NoRoomForColumns if the disk has no space for their ids."""
        names = ", ".join(map(quoted, table.search(named, _OWNER.split(", "))))
        return f"path IN ({names})" if names else "false"

    def _has(self, rows: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall())

    def _note_lost(self) -> None:
        """Sets ``anywhere`` for each deleted trace in ``decided`` that has no row at the time in
        the record of its deletion: its rows may be in any file.

        If a trace was deleted before a change of its time was published, the step of this change
        found no trace and kept the rows with the former time, which the record of the deletion does
        not contain. Traces of experiments that do not exist are left out, because all rows of such
        an experiment are removed."""
        deleted = (
            "named_times SEMI JOIN decided USING (experiment_id, trace_id) "
            "SEMI JOIN known_experiments USING (experiment_id) WHERE last"
        )
        if not self._has(deleted):
            return
        (traces,) = (table for table in self._tables if table.table is TRACES)
        source = traces.source(self._at_times(traces))
        self._connection.execute(
            f"""
            UPDATE decided SET anywhere = true
            WHERE ({_OWNER}) IN (
                SELECT ({_OWNER}) FROM {deleted}
                EXCEPT
                SELECT ({_OWNER}) FROM {source} JOIN named_times USING ({_OWNER})
                WHERE last AND epoch_ms(request_time) = ms
            )
            """
        )

    def _merge_times_of_expired(self) -> None:
        """For each trace that DynamoDB lacks and whose published rows may have several request
        times: stages its rows with the time of its latest row, so that the other rows are removed.

        The stream record of a change of the time may arrive after the trace expired. Then rows with
        the former time still exist, and DynamoDB no longer has the right time.
        """
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE new_spans AS SELECT * FROM {SPANS.nothing};
            CREATE OR REPLACE TEMP TABLE expired AS
            SELECT experiment_id, trace_id FROM part
            ANTI JOIN decided USING (experiment_id, trace_id)
            JOIN named_times USING (experiment_id, trace_id)
            GROUP BY ALL HAVING count(DISTINCT ms) > 1
            """
        )
        if not self._has("expired"):
            return
        sources = {}
        for table in self._tables:
            try:
                sources[table.table.name] = table.source(self._held(table, "expired"))
            except (NoRoom, NoRoomForColumns) as error:
                # With the rows of some tables only, those of the others would be removed.
                _tell_of_room(table, error)
                return
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE latest AS
            SELECT experiment_id, trace_id,
                   arg_max(request_time, update_time) AS request_time
            FROM {sources[TRACES.name]} SEMI JOIN expired USING (experiment_id, trace_id)
            GROUP BY ALL;
            INSERT INTO decided SELECT experiment_id, trace_id, true FROM latest
            """
        )
        for each in OF_TRACES:
            self._connection.execute(
                f"INSERT INTO {STAGED[each.name]} SELECT {each.stored} "
                f"FROM {sources[each.name]} "
                "SEMI JOIN latest USING (experiment_id, trace_id, request_time)"
            )

    def _replace_spans(self) -> None:
        """Replaces the spans of the traces in ``decided``, in one commit for each batch of traces.
        Keeps the published spans of existing traces whose spans cannot be read or whose retention
        has ended, and only gives them the time of the trace."""
        (table,) = (each for each in self._tables if each.table is SPANS)
        self._connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE whole_part AS SELECT * FROM decided;
            CREATE OR REPLACE TEMP TABLE left_traces AS
            SELECT * FROM decided SEMI JOIN read_traces USING (experiment_id, trace_id);
            CREATE OR REPLACE TEMP TABLE decided AS
            SELECT * FROM whole_part ANTI JOIN read_traces USING (experiment_id, trace_id)
            """
        )
        if self._has("decided"):
            self._replace(table)
        for _ in span_staging.batches(self._connection, self._with_spans):
            self._connection.execute(
                """
                CREATE OR REPLACE TEMP TABLE decided AS
                SELECT * FROM whole_part SEMI JOIN span_traces USING (experiment_id, trace_id);
                CREATE OR REPLACE TEMP TABLE left_traces AS
                SELECT * FROM left_traces ANTI JOIN span_traces USING (experiment_id, trace_id)
                """
            )
            self._replace(table)
        self._move_spans(table)

    def _move_spans(self, table: WritableTable) -> None:
        """Sets the time of the published spans of the traces in ``left_traces`` to the request time
        of their trace, because the record of a later deletion contains only that time. One commit
        for each batch of traces, as for spans that are read."""
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE decided AS SELECT * FROM left_traces
            WHERE anywhere OR ({_OWNER}) IN (
                SELECT ({_OWNER}) FROM named_times JOIN new_traces USING ({_OWNER})
                WHERE ms <> epoch_ms(request_time)
            )
            """
        )
        if not self._has("decided"):
            return
        try:
            span_staging.find_misplaced(self._connection, table.source(self._file_condition(table)))
            for number in span_staging.misplaced_batches(self._connection):
                self._connection.execute(
                    f"""
                    CREATE OR REPLACE TEMP TABLE decided AS SELECT * FROM left_traces
                    SEMI JOIN (SELECT * FROM misplaced WHERE number = {number}) USING ({_OWNER})
                    """
                )
                source = table.source(self._file_condition(table))
                span_staging.move(self._connection, source)
                self._replace(table)
        except NoRoom as error:
            _tell_of_room(table, error)

    def _collecting_spans(self, stored_traces: Iterator[StoredTrace]) -> Iterator[StoredTrace]:
        """Yields the traces of a part, and collects in ``_with_spans`` those whose spans are to be
        read."""
        self._with_spans = []
        now = time.time()
        for stored in stored_traces:
            if (trace := span_source.trace_of(stored, now)) is not None:
                self._with_spans.append(trace)
            yield stored
        self._with_spans.sort(key=lambda trace: trace.request_time)

    def _time_condition(self) -> str:
        """Returns an SQL condition on the statistics of files that may hold rows of the traces in
        ``decided``: files of their days that overlap the request times that they had. The times
        exclude most files of a day, because traces that change are mostly those of the last
        minutes. Traces in ``decided`` with ``anywhere`` may also have rows in other files."""
        days = self._connection.execute(
            f"""
            SELECT day, min(ms), max(ms) FROM (
                SELECT experiment_id, trace_id, day, ms FROM named_times
                UNION ALL
                SELECT experiment_id, trace_id, {TRACES.partition}, epoch_ms(request_time)
                FROM new_traces
            ) SEMI JOIN decided USING (experiment_id, trace_id) GROUP BY day ORDER BY day
            """
        ).fetchall()
        low, high = '"min.request_time"', '"max.request_time"'
        return (
            " OR ".join(
                f'("partition.{TRACES.partition}" = {quoted(day)} AND ({low} IS NULL '
                f"OR {high} IS NULL "
                f"OR (epoch_ms({low}) <= {last} AND epoch_ms({high}) >= {first})))"
                for day, first, last in days
            )
            or "false"
        )

    def _check_workspaces(self, known: dict[str, Stored]) -> None:
        """Raises CommitFailedError if an experiment was moved to another workspace, or removed,
        since its traces were read. The publisher that handled the move may not have seen the rows
        that this step has written, so the caller repeats the step."""
        now = experiment_source.find_experiments(list(known))
        for experiment_id, stored in known.items():
            experiment = now.get(experiment_id)
            if experiment is None or experiment.experiment.workspace != stored.experiment.workspace:
                raise CommitFailedError(f"experiment {experiment_id} was moved")


def _tell_of_room(table: WritableTable, error: Exception) -> None:
    _logger.warning(
        "the disk has too little space to search the files of %s for rows at other times than the "
        "named ones; such rows stay as they are: %s",
        table.table.name,
        error,
    )


def follow_experiments(connection: duckdb.DuckDBPyConnection, tables: list[WritableTable]) -> None:
    """Corrects the workspace in the rows of moved experiments (staged table ``placed``), and
    removes the rows of deleted experiments (staged table ``gone_experiments``); two commits at most
    for each table."""
    for table in tables:
        change = table.change()
        row_removal.remove_rows(connection, table, change, "gone_experiments", "experiment_id")
        change.commit()
        row_removal.correct_workspaces(connection, table)
