"""Requests for the publisher to remove rows of traces from the system tables: for traces that a
client deletes although they have expired in the table, where the system tables keep their rows.

Such a request is an item in the partition of the experiment. It is written without knowing whether
the system tables have rows of these ids, so neither the answer nor its time tells a caller. Its
stream record names the traces to the publisher, which removes only rows of this experiment, and
only of traces that do not exist when it reads the table."""

from __future__ import annotations

import time
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.ids import now_ms
from mlcore.limits.traces import may_be_trace_id
from mlcore.models.traces import TraceRemoval

MOST_IDS: Final = 1000
MOST_BYTES: Final = 64 << 10
"""One request removes the rows of at most so many traces that the table lacks, whose ids have at
most so many bytes. Bounds what a request costs here and in the publisher."""
KEPT_SECONDS: Final = 86_400
"""The item is needed until its stream record is delivered, and the stream keeps a record for a
day."""


def request(experiment: Experiment, trace_ids: Iterable[str]) -> None:
    """Asks the publisher to remove the rows of these traces of an experiment from the SQL tables.
    Ids that no trace can have, and those beyond :data:`MOST_IDS` or :data:`MOST_BYTES`, are left
    out. Repeating the call writes the same item again."""
    named = _within_limits(trace_ids)
    if not named:
        return
    suffix = blake2b("\n".join(sorted(named)).encode(), digest_size=16).hexdigest()
    key = keys.trace_removal(experiment.experiment_id, suffix)
    item = TraceRemoval(
        PK=key.pk,
        SK=key.sk,
        experiment_id=experiment.experiment_id,
        trace_ids=frozenset(named),
        # A later request for the same traces must change the item: else it has no stream record.
        updated_at=now_ms(),
        ttl=int(time.time()) + KEPT_SECONDS,
    )
    table.put(item.serialize())


def _within_limits(trace_ids: Iterable[str]) -> list[str]:
    named: list[str] = []
    size = 0
    for trace_id in filter(may_be_trace_id, dict.fromkeys(trace_ids)):
        length = len(trace_id.encode())
        if len(named) < MOST_IDS and size + length <= MOST_BYTES:
            named.append(trace_id)
            size += length
    return named
