"""The lines of landing objects about traces: which traces changed, or were deleted.

A line is ``{"x": experiment, "t": trace, "m": [milliseconds…]}``, and for a deleted trace also
``"gone": true``. The publisher reads the trace itself from the table, so a line that is delivered
twice, late or out of order has no lasting effect. ``m`` has the request times of the trace before
and after the changes; published rows of the trace exist mostly for the days of these times. A line
with ``"made": true`` begins with the creation of the trace: it and the lines that follow contain
all request times since then. Without ``m`` rows may exist for any day.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.models.traces import Trace, TraceRemoval
from mlcore.system_tables import landing_objects
from mlcore.system_tables.run_rows import within

TRACE: Final = keys.TRACE.name
"""The type of the items whose stream records are written to landing objects."""
REMOVAL: Final = keys.TRACE_REMOVAL.name
"""The type of the items that name traces whose rows are to be removed."""
_EXPIRY: Final = "dynamodb.amazonaws.com"

Record = Mapping[str, Any]


class ChangedTraces:
    """Collects the traces that changed, and makes the lines of the landing object that names them
    (``landing``)."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], set[int] | None] = {}
        self._deleted: set[tuple[str, str]] = set()
        self._made: set[tuple[str, str]] = set()
        """The traces of which the first record is their creation."""

    def __bool__(self) -> bool:
        return bool(self._times)

    def add_record(self, record: Record) -> None:
        """Adds the trace whose item a stream record says has changed. A trace that expired does not
        count as deleted: its rows stay in the system tables."""
        change = record["dynamodb"]
        images = [
            Trace.of(image) for name in ("OldImage", "NewImage") if (image := change.get(name))
        ]
        identity = (images[-1].experiment_id, images[-1].trace_id)
        if identity not in self._times and record["eventName"] == "INSERT":
            self._made.add(identity)
        times = self._times.setdefault(identity, set())
        if times is not None:
            times.update(within(image.request_time) for image in images)
        if record["eventName"] == "REMOVE" and not is_expiry(record):
            self._deleted.add(identity)

    def add_removal(self, image: Raw) -> None:
        """Adds the traces that a removal's item names, whose rows the publisher removes from the
        system tables unless the traces exist."""
        removal = TraceRemoval.of(image)
        for trace_id in removal.trace_ids or ():
            self.forget(removal.experiment_id, trace_id)

    def add(self, experiment_id: str, trace_id: str) -> None:
        """Adds an existing trace; which request times its older rows may have is unknown."""
        self._times[experiment_id, trace_id] = None

    def forget(self, experiment_id: str, trace_id: str) -> None:
        """Adds a trace whose rows the publisher removes from all partitions of the system tables,
        unless the trace exists."""
        self._times[experiment_id, trace_id] = None
        self._deleted.add((experiment_id, trace_id))

    def lines(self) -> Iterator[str]:
        """Yields the lines of the landing object (the file by which the publisher learns of changed
        traces): one per trace, in a fixed order, so that equal changes give equal objects."""
        for identity, times in sorted(self._times.items(), key=lambda entry: entry[0]):
            fields: dict[str, Any] = {"x": identity[0], "t": identity[1]}
            if times is not None:
                fields["m"] = sorted(times)
            if identity in self._deleted:
                fields["gone"] = True
            if identity in self._made:
                fields["made"] = True
            yield json.dumps(fields)


def put(name: str, changed: ChangedTraces) -> None:
    """Writes the landing object that tells the publisher of the system tables which traces a batch
    of stream records changed; nothing if it changed none."""
    if changed:
        landing_objects.put(name, landing_objects.compress(changed.lines()), landing_objects.TRACES)


def forget(experiment_id: str, trace_ids: Iterable[str]) -> None:
    """Writes a landing object that makes the publisher remove all system table rows of these
    traces, except of a trace that still exists. Traces that expired need it: their expiry in
    DynamoDB does not remove their rows."""
    changed = ChangedTraces()
    for trace_id in trace_ids:
        changed.forget(experiment_id, trace_id)
    number = str(time.time_ns())
    put(landing_objects.name_of(f"{landing_objects.BACKFILL}forgotten", number, number), changed)


def defer(experiment_id: str, trace_id: str, *, is_deleted: bool) -> None:
    """Writes a landing object that makes the publisher of the system tables read this trace again,
    or remove its rows, when it retries deferred traces."""
    changed = ChangedTraces()
    if is_deleted:
        changed.forget(experiment_id, trace_id)
    else:
        changed.add(experiment_id, trace_id)
    number = str(time.time_ns())
    name = landing_objects.name_of(f"{landing_objects.BACKFILL}deferred", number, number)
    landing_objects.put(name, landing_objects.compress(changed.lines()), landing_objects.DEFERRED)


def is_expiry(record: Record) -> bool:
    """Whether a stream record shows that DynamoDB itself removed the item, because the time in the
    item's attribute ``ttl`` had passed."""
    identity = record.get("userIdentity") or {}
    return bool(identity.get("principalId") == _EXPIRY)


def of_traces(refs: Iterable[tuple[str, str]]) -> ChangedTraces:
    """Returns the changes that make the publisher of the system tables read these existing traces,
    given as (experiment id, trace id)."""
    changed = ChangedTraces()
    for identity in refs:
        changed.add(*identity)
    return changed
