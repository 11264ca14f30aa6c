"""The lines of landing objects about the entities of ``entity_kinds``: which of them changed.

A line is ``{"k": table, "p": reference}``. The publisher reads the entity itself from the table, so
a line that is delivered twice, late or out of order has no further effect. A line of a backfill has
``"whole": true``: all parts of the entity are read, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mlcore.system_tables import landing_objects
from mlcore.system_tables.entity_kinds import BY_ITEM_TYPE, EntityRef
from mlcore.system_tables.trace_landing import Record


class ChangedEntities:
    """Collects entities that have a system table (such as jobs) and that were changed or are part
    of a backfill, and makes the lines of their landing object, a file that the publisher reads."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, EntityRef], bool] = {}
        """By table and reference of an entity: whether the publisher must also read all parts of
        the entity."""

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add_record(self, record: Record, item_type: str) -> None:
        """Adds the entity whose item a stream record says has changed.

        Args:
            item_type: the type of the record's item, one of those in ``entity_kinds``.
        """
        change = record["dynamodb"]
        kind = BY_ITEM_TYPE[item_type]
        self.add(kind.table, kind.ref_of(change.get("NewImage") or change["OldImage"]))

    def add(self, table: str, ref: EntityRef, *, whole: bool = False) -> None:
        self._changes[table, ref] = whole or self._changes.get((table, ref), False)

    def lines(self) -> Iterator[str]:
        """Yields the lines of the landing object (a file of changes to publish), one per changed
        entity, in a fixed order, so that equal changes give equal objects."""
        for (table, ref), whole in sorted(self._changes.items(), key=lambda entry: entry[0]):
            fields: dict[str, Any] = {"k": table, "p": ref}
            if whole:
                fields["whole"] = True
            yield json.dumps(fields)


def put(name: str, changed: ChangedEntities) -> None:
    """Writes the landing object of a batch of stream records, if entities changed in it."""
    if changed:
        landing_objects.put(
            name, landing_objects.compress(changed.lines()), landing_objects.ENTITIES
        )


def read(contents: Iterable[bytes]) -> dict[str, dict[EntityRef, bool]]:
    """Reads landing objects and returns which entities changed. The map has, by table and by
    reference of an entity, whether all parts of the entity must be read, too.

    Args:
        contents: the decompressed contents of landing objects.
    """
    changes: dict[str, dict[EntityRef, bool]] = {}
    for content in contents:
        for line in content.splitlines():
            fields = json.loads(line)
            of_table, ref = changes.setdefault(fields["k"], {}), tuple(fields["p"])
            of_table[ref] = fields.get("whole", False) or of_table.get(ref, False)
    return changes
