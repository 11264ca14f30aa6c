"""Appends audited requests to ``audit_log``, each once, and continues the chain of hashes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
from deltalake import DeltaTable

from mlcore.system_tables import audit_landing, landing_objects
from mlcore.system_tables.aws_account import account_id
from mltables import audit_chain
from mltables.audit_chain import Event
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_definitions import AUDIT, open_or_create
from mltables.writable_table import WritableTable

ROWS_TOGETHER: Final = 10_000
"""Rows that are hashed and inserted together; bounds the memory."""
_DAY: Final = "%Y-%m-%d"
_COLUMNS: Final = ", ".join(f"{name}: '{kind}'" for name, kind in audit_landing.FIELDS.items())
_MEASURED: Final = tuple(audit_landing.MEASURED)
_STAGED: Final = (*Event._fields, "sequence", "previous_hash", "hash", *_MEASURED)


def open_table(lake: Lake, *, may_be_behind: bool = False) -> DeltaTable:
    """Opens ``audit_log`` (``Lake.open``). Creates it, with a key for pseudonyms, if it does not
    exist.

    Earlier releases could create the empty table without a key. Such a table gets its key here,
    before its first row.
    """
    properties = {audit_chain.PROPERTY: audit_chain.new_key()}
    delta = open_or_create(lake, AUDIT, properties, may_be_behind=may_be_behind)
    if audit_chain.PROPERTY not in delta.metadata().configuration:
        DeltaTable(lake.uri(AUDIT.name), storage_options=lake.options).alter.set_table_properties(
            properties, raise_if_not_exists=False
        )
        lake.expect_commits(AUDIT.name)
        delta = open_or_create(lake, AUDIT, properties)
    return delta


def key_of(delta: DeltaTable) -> str:
    """Returns the key from which the users' pseudonyms in the system table ``audit_log`` are
    computed, a property of the Delta table."""
    key: str = delta.metadata().configuration[audit_chain.PROPERTY]
    return key


def append(
    connection: duckdb.DuckDBPyConnection, lake: Lake, keys: Sequence[str], folder: Path
) -> int:
    """Appends to ``audit_log`` those audited requests of landing objects (files of changes to
    publish) that the table lacks, in one commit. Returns the number of appended rows.

    Args:
        keys: the keys of the landing objects, all about the audit.

    Raises:
        CommitFailedError: another publisher committed first; the caller repeats the step.
    """
    # An old snapshot is enough: its rows are in newer versions, too, until their retention ends.
    delta = open_table(lake, may_be_behind=True)
    table = WritableTable(connection, lake, Snapshot(lake, AUDIT, delta), folder)
    _load_landed(connection, keys, folder)
    now = int(time.time() * 1000)
    day, sequence, last = _end_of_chain(connection, table, _text_of(now))
    new = _lacking(connection, table)
    _create_staged(connection)
    added = 0
    pseudonyms = key_of(delta)
    known = len(Event._fields)
    while rows := new.fetchmany(ROWS_TOGETHER):
        chained = []
        for row in rows:
            event = _with_pseudonym(Event(*row[:known]), pseudonyms)
            hashed = audit_chain.hash_of(event, now, sequence + 1, last, pseudonyms)
            sequence, last, before = sequence + 1, hashed, last
            chained.append((*event, sequence, before, hashed, *row[known:]))
        _insert(connection, chained)
        added += len(chained)
    change = table.change()
    change.add(
        f"""
        SELECT {quoted(account_id())} AS account_id,
               make_timestamp(event_time * 1000)::TIMESTAMPTZ AS event_time,
               make_timestamp({now} * 1000)::TIMESTAMPTZ AS insert_time,
               * EXCLUDE (event_time)
        FROM staged_audit ORDER BY sequence
        """,
        day,
    )
    change.commit()
    return added


def _load_landed(connection: duckdb.DuckDBPyConnection, keys: Sequence[str], folder: Path) -> None:
    """Creates ``landed_audit`` from landing objects: each request once."""
    path = folder / "audit-landed.ndjson"
    with path.open("wb") as file:
        if keys[0].endswith(landing_objects.AUDIT_LOGS):
            for content in landing_objects.read(keys):
                lines = audit_landing.lines_of_logs(content)
                file.writelines(f"{line}\n".encode() for line in lines)
        else:
            file.writelines(landing_objects.read(keys))
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE landed_audit AS
        SELECT DISTINCT ON (id) * FROM read_ndjson({quoted(str(path))}, columns={{{_COLUMNS}}})
        """
    )
    path.unlink()


def _end_of_chain(
    connection: duckdb.DuckDBPyConnection, table: WritableTable, today: str
) -> tuple[str, int, str]:
    """Returns the day to which rows are appended, and number and hash of the last row. The day is
    never before that of the last row, even if the clock was set back."""
    days = [name.partition("/")[0].rpartition("=")[2] for name in table.names()]
    if not days:
        return today, 0, audit_chain.BEGINNING
    newest = max(days)
    rows = table.source(f'"partition.{AUDIT.partition}" = {quoted(newest)}')
    ((sequence, last),) = connection.execute(
        f"SELECT sequence, hash FROM {rows} ORDER BY sequence DESC LIMIT 1"
    ).fetchall()
    return max(newest, today), sequence, last


def _lacking(connection: duckdb.DuckDBPyConnection, table: WritableTable) -> Any:
    """Returns a cursor with the landed requests that the table lacks, in the order of their times.
    A request is published on the day on which it happened or later, so only these days are
    searched."""
    ((oldest,),) = connection.execute("SELECT min(t) FROM landed_audit").fetchall()
    # A day earlier, in case that the clock of a function is ahead of the publisher's.
    since = _text_of((oldest or 0) - 86_400_000)
    known = table.source(f'"partition.{AUDIT.partition}" >= {quoted(since)}')
    return connection.cursor().execute(
        f"""
        SELECT t, id, workspace, "user", NULL, login, key, admin, address, rpc, method, status,
               outcome, entity, {", ".join(_MEASURED)}
        FROM landed_audit ANTI JOIN (SELECT record_id AS id FROM {known}) USING (id)
        ORDER BY t, id
        """
    )


def _create_staged(connection: duckdb.DuckDBPyConnection) -> None:
    kinds = {name: kind for name, kind, *_ in AUDIT.columns} | {"event_time": "BIGINT"}
    listed = ", ".join(f"{name} {kinds[name]}" for name in _STAGED)
    connection.execute(f"CREATE OR REPLACE TABLE staged_audit ({listed})")


def _insert(connection: duckdb.DuckDBPyConnection, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = {name: [row[at] for row in rows] for at, name in enumerate(_STAGED)}
    kinds = audit_landing.MEASURED
    listed = ", ".join(
        f"unnest(?){f'::{kinds[name]}' if name in kinds else ''} AS {name}" for name in columns
    )
    connection.execute(f"INSERT INTO staged_audit SELECT {listed}", list(columns.values()))


def _with_pseudonym(event: Event, key: str) -> Event:
    if event.user_name is None:
        return event
    return event._replace(user_id=audit_chain.pseudonym(event.user_name, key))


def _text_of(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(_DAY)


def events(
    connection: duckdb.DuckDBPyConnection, source: str
) -> Iterator[tuple[Event, int, int, str, str]]:
    """Yields the rows of ``audit_log`` from a FROM source, in the order of the chain of hashes, as
    (event, time of insertion, number, previous hash, hash)."""
    columns = ", ".join(
        f"epoch_ms({name})" if name == "event_time" else name for name in Event._fields
    )
    rows = connection.cursor().execute(
        f"SELECT {columns}, epoch_ms(insert_time), sequence, previous_hash, hash "
        f"FROM {source} ORDER BY sequence, hash"
    )
    while listed := rows.fetchmany(ROWS_TOGETHER):
        for row in listed:
            end = len(Event._fields)
            yield (Event(*row[:end]), *row[end:])
