"""Erases a person's name from the rows of audit_log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mltables import audit_chain
from mltables.audit_publishing import events, key_of, open_table
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_definitions import AUDIT
from mltables.writable_table import WritableTable


def rows_about(name: str) -> int:
    """Returns the number of rows of ``audit_log`` that name a user, which :func:`erase` would
    change."""
    with Lake() as lake, connect(None, "400MB") as connection:
        delta = open_table(lake)
        key = key_of(delta)
        source = Snapshot(lake, AUDIT, delta).source(connection)
        return sum(
            audit_chain.erased(event, name, key) != event
            for event, *_ in events(connection, source)
        )


def erase(name: str) -> int:
    """Removes a user's name from all rows of ``audit_log``, in one commit
    (:func:`audit_chain.erased`). Returns the number of changed rows. The hashes stay valid.

    Raises:
        CommitFailedError: a publisher committed first; repeat the call.
    """
    changed = 0
    with (
        Lake() as lake,
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        delta = open_table(lake)
        key = key_of(delta)
        table = WritableTable(connection, lake, Snapshot(lake, AUDIT, delta), Path(folder))
        change = table.change()
        for local, file in table.local(table.names()).items():
            source = f"read_parquet([{quoted(local)}], hive_partitioning=false)"
            replaced = [
                (sequence, new.user_name, new.entity)
                for event, _, sequence, *_ in events(connection, source)
                if (new := audit_chain.erased(event, name, key)) != event
            ]
            if not replaced:
                continue
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE erased AS SELECT unnest(?) AS sequence, "
                "unnest(?)::VARCHAR AS new_name, unnest(?) AS new_entity",
                [list(column) for column in zip(*replaced, strict=True)],
            )
            columns = ", ".join(
                {
                    "user_name": "if(e.sequence IS NULL, r.user_name, new_name) AS user_name",
                    "entity": "coalesce(new_entity, r.entity) AS entity",
                }.get(column, f"r.{column}")
                for column, *_ in AUDIT.columns
            )
            change.add(
                f"SELECT {columns} FROM {source} r LEFT JOIN erased e USING (sequence) "
                "ORDER BY r.sequence",
                file.partition("/")[0].rpartition("=")[2],
            )
            change.remove([file])
            changed += len(replaced)
        change.commit()
    return changed
