"""Brings what a table holds already into the system tables: lands one experiment after the other,
and publishes it. May be killed and started again."""

from __future__ import annotations

from collections.abc import Callable

from mlcore.system_tables.backfill import land
from mltables.publisher import publish
from mltables.step import Published


def backfill(tell: Callable[[str], None] = lambda _: None) -> Published:
    """
    Args:
        tell: gets a line for each experiment.

    Returns:
        What was published; of a backfill that goes on, what it still had to do.
    """
    total = Published()
    for experiment_id in land():
        done = publish()
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        tell(f"experiment {experiment_id}: {done.runs} runs, {done.points} points")
    return total
