"""Backfill: adds the existing data of the DynamoDB table to the system tables. Writes and publishes
one experiment after the other. An interrupted backfill can be started again and continues."""

from __future__ import annotations

from collections.abc import Callable

from mlcore.system_tables.backfill import land
from mltables.publish_step import Published
from mltables.publisher import publish


def backfill(tell: Callable[[str], None] = lambda _: None) -> Published:
    """Lands (writes as batches for the publisher) and publishes all experiments.

    Args:
        tell: called with a line of progress for each experiment.

    Returns:
        The counts of this call. A resumed backfill counts only the remaining experiments.
    """
    total = Published()
    for experiment_id in land():
        done = publish()
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        tell(
            f"experiment {experiment_id}: {done.runs} runs, {done.points} points, "
            f"{done.traces} traces"
        )
    return total
