"""One step of the publisher for entities outside of experiments
(``mlcore/system_tables/entity_sources``). Such an entity is a root, for example a registered model,
or a part of one, for example a model version. A step makes rows from landing objects (files of
changes to publish) and DynamoDB items, and commits the tables of one kind of root and its parts.
``publisher`` decides when to run a step and whether to repeat it.

The rows of parts are committed before the row of their root. So if a root has no row, perhaps not
all of its parts are published. Changes of such parts are skipped: the landing object of the root
makes a later step read all parts, also after a killed step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from mlcore.system_tables.entity_kinds import EntityRef
from mlcore.system_tables.entity_sources import PartSource, RootSource, Row
from mltables import entity_staging, row_removal
from mltables.entity_tables import OF_ENTITIES
from mltables.lake import Lake
from mltables.row_replacement import replace_rows
from mltables.snapshot import Snapshot
from mltables.table_columns import Table
from mltables.writable_table import WritableTable

_BY_NAME = {table.name: table for table in OF_ENTITIES}

Changes = Mapping[EntityRef, bool]
"""The changed entities. The value says whether all parts of the entity must be read."""


def tables_of(root: RootSource) -> list[Table]:
    """Returns the system tables that a publication of this kind of root (such as registered models)
    writes: that of the parts (such as model versions), if the kind has parts, then that of the
    roots."""
    names = [root.part.table] if root.part else []
    return [_BY_NAME[name] for name in (*names, root.table)]


class EntityStep:
    """Publishes changes of one kind of root and its parts (such as registered models and their
    versions): writes their rows to the kind's system tables, each opened at one snapshot."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshots: Mapping[str, Snapshot],
        folder: Path,
        kind: RootSource,
    ) -> None:
        self._connection, self._folder, self._kind = connection, folder, kind
        opened = [
            WritableTable(connection, lake, snapshots[table.name], folder)
            for table in tables_of(kind)
        ]
        self._roots, self._parts = opened[-1], opened[0] if kind.part else None
        self._id = self._roots.table.identity
        """The column with the ids of roots, in both tables."""

    def run(self, roots: Changes, parts: Changes) -> int:
        """Publishes to the system tables the changed entities of one kind (``roots``, such as
        registered models) and of their parts (such as model versions). Returns the number of rows
        that were written or removed.

        Raises:
            CommitFailedError: another publisher committed first; the caller repeats the step.
        """
        published = self._published({ref[0] for ref in (*roots, *parts)})
        changed, exist = self._publish_roots(roots, published)
        if self._kind.part and self._parts:
            there = exist | (published.keys() - {ref[0] for ref in roots})
            some = [ref for ref in parts if ref[0] in there]
            changed += self._publish_parts(self._kind.part, self._parts, some)
        for table in (self._parts, self._roots):
            if table:
                table.finish_step()
        return changed

    def _published(self, ids: Collection[str]) -> dict[str, str]:
        """Returns the published workspace of each of these roots that has a row, by id."""
        self._load_ids("named", self._roots.table, [self._id], [(root_id,) for root_id in ids])
        rows = self._connection.execute(
            f"SELECT {self._id}, workspace_id "
            f"FROM {self._roots.source(self._roots.holding('named', self._id))} "
            f"SEMI JOIN named USING ({self._id})"
        ).fetchall()
        return dict(rows)

    def _publish_roots(
        self, changes: Changes, published: Mapping[str, str]
    ) -> tuple[int, set[str]]:
        """Commits the rows of changed roots and of their parts. Returns the number of rows that
        were written or removed, and the ids of the roots that exist."""
        refs = {ref[0]: ref for ref in changes}
        whole = {ref[0] for ref, is_whole in changes.items() if is_whole}
        exist: set[str] = set()
        changed = 0
        rows = self._kind.find(list(changes), published)
        for batch in self._batches(self._roots.table, rows):
            ids = [row[0] for row in batch]
            exist.update(ids)
            appeared = [root_id for root_id in ids if root_id in whole or root_id not in published]
            changed += self._follow_roots([refs[root_id] for root_id in appeared])
            self._decide(self._roots.table, [self._id], [(root_id,) for root_id in ids])
            changed += self._replace(self._roots)
        if gone := [(root_id,) for root_id in refs if root_id not in exist]:
            changed += self._remove(gone)
        return changed, exist

    def _follow_roots(self, appeared: Sequence[EntityRef]) -> int:
        """Corrects the inherited columns in the rows of parts whose roots are in ``new_rows``, and
        publishes all parts of the roots in ``appeared``."""
        kind, table = self._kind.part, self._parts
        if not kind or not table:
            return 0
        self._connection.execute("CREATE OR REPLACE TEMP TABLE new_roots AS SELECT * FROM new_rows")
        entity_staging.load_roots(self._connection, "new_roots", self._id, kind.inherited)
        change = table.change()
        row_removal.rewrite(
            self._connection,
            table,
            change,
            table.holding("roots", self._id),
            lambda files: (
                f"{files} JOIN roots USING ({self._id}) "
                f"WHERE {entity_staging.differs(kind.inherited)}"
            ),
            lambda file: (
                f"(SELECT * REPLACE ({entity_staging.corrected(kind.inherited)}) "
                f"FROM {file} LEFT JOIN roots USING ({self._id}))"
            ),
        )
        change.commit()
        changed = self._publish_all_parts(kind, table, appeared) if appeared else 0
        self._connection.execute("CREATE OR REPLACE TEMP TABLE new_rows AS SELECT * FROM new_roots")
        return changed

    def _publish_all_parts(
        self, kind: PartSource, table: WritableTable, roots: Sequence[EntityRef]
    ) -> int:
        """Publishes all parts of these roots, and removes the rows of parts that no longer
        exist."""
        identity = table.table.identity.split(", ")
        self._load_ids("seen", table.table, identity, [])
        changed = 0
        rows = chain.from_iterable(map(kind.of_root, roots))
        for batch in self._batches(table.table, rows, kind.inherited):
            self._decide(table.table, identity, [row[:2] for row in batch])
            self._connection.execute("INSERT INTO seen SELECT * FROM decided")
            changed += self._replace(table)
        self._load_ids("read_roots", table.table, [self._id], [(ref[0],) for ref in roots])
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE decided AS
            SELECT {table.table.identity}
            FROM {table.source(table.holding("read_roots", self._id))}
            SEMI JOIN read_roots USING ({self._id}) ANTI JOIN seen USING ({table.table.identity})
            """
        )
        entity_staging.load_none(self._connection, table.table)
        return changed + self._replace(table)

    def _publish_parts(
        self, kind: PartSource, table: WritableTable, refs: Sequence[EntityRef]
    ) -> int:
        """Commits the rows of changed parts whose roots are published; parts that are gone lose
        theirs."""
        if not refs:
            return 0
        self._load_ids("named", self._roots.table, [self._id], [(ref[0],) for ref in refs])
        source = self._roots.source(self._roots.holding("named", self._id))
        entity_staging.load_roots(
            self._connection,
            f"{source} SEMI JOIN named USING ({self._id})",
            self._id,
            kind.inherited,
        )
        identity = table.table.identity.split(", ")
        left = {(ref[0], ref[-1]) for ref in refs}
        changed = 0
        for batch in self._batches(table.table, kind.find(refs), kind.inherited):
            left.difference_update((row[0], str(row[1])) for row in batch)
            self._decide(table.table, identity, [row[:2] for row in batch])
            changed += self._replace(table)
        if left:
            self._decide(table.table, identity, sorted(left))
            entity_staging.load_none(self._connection, table.table)
            changed += self._replace(table)
        return changed

    def _remove(self, ids: Sequence[tuple[str]]) -> int:
        """Removes the rows of roots that no longer exist, after the rows of their parts."""
        changed = 0
        for table in (self._parts, self._roots):
            if table:
                self._decide(table.table, [self._id], ids)
                entity_staging.load_none(self._connection, table.table)
                changed += replace_rows(
                    self._connection,
                    table,
                    self._id,
                    "new_rows",
                    table.holding("decided", self._id),
                )
        return changed

    def _batches(
        self, table: Table, rows: Iterator[Row], inherited: Sequence[str] = ()
    ) -> Iterator[list[Row]]:
        return entity_staging.batches(self._connection, table, rows, self._folder, inherited)

    def _decide(self, table: Table, columns: Sequence[str], ids: Sequence[Any]) -> None:
        """Creates ``decided``, the entities whose published rows are replaced."""
        self._load_ids("decided", table, columns, ids)

    def _load_ids(
        self, name: str, table: Table, columns: Sequence[str], ids: Sequence[Any]
    ) -> None:
        entity_staging.load_ids(self._connection, name, table, columns, ids)

    def _replace(self, table: WritableTable) -> int:
        return replace_rows(
            self._connection,
            table,
            table.table.identity,
            "new_rows",
            table.holding("decided", self._id),
        )
