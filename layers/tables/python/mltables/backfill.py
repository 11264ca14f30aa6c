"""Backfill: adds the existing data of the DynamoDB table to the system tables. Writes and publishes
one experiment after the other, then the entities outside of experiments. If it is interrupted and
started again, it continues."""

from __future__ import annotations

from collections.abc import Callable

from mlcore.system_tables.backfill_landing import land
from mltables.publish_step import Published
from mltables.publisher import publish


def backfill(tell: Callable[[str], None] = lambda _: None) -> Published:
    """Writes landing objects (files of changes to publish) for all experiments and other entities,
    and publishes them.

    Args:
        tell: called with a line of progress for each experiment, and for each table of other
            entities.

    Returns:
        The counts of this call. A resumed backfill counts only what remained.
    """
    total = Published()
    for landed in land():
        done = publish()
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        tell(
            f"{landed}: {done.runs} runs, {done.points} points, {done.traces} traces, "
            f"{done.entities} other rows"
        )
    return total
