"""Computes when deleted runs and experiments expire. The functions read only the setting
``ttl_policy``."""

from __future__ import annotations

from typing import Final

from indexer.projection.child_items import Writes
from mlcore.db.expression import Raw
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.runs import Run
from mlcore.repos.runs.core import runs
from mlcore.repos.settings import ttl_policy

CHILD_SECONDS: Final = 2 * 86_400
"""Seconds by which children expire later than their parent: DynamoDB removes expired items in any
order, and an entity that still exists must be complete."""


def later(end: int) -> int:
    """Returns the time at which the child items of an entity (such as a trace) expire:
    :data:`CHILD_SECONDS` after ``end``, when the entity does. Both are seconds since the epoch."""
    return end + CHILD_SECONDS


def with_end(writes: Writes, source: Raw | None) -> Writes:
    """Returns a copy of the writes of derived items, in which each item to put expires
    :data:`CHILD_SECONDS` after the source item. Returns the writes unchanged if the source has no
    TTL."""
    own = None if source is None else Item.of(source).ttl
    if own is None:
        return writes
    end = later(own)
    return writes._replace(
        puts=[ttl_policy.with_expiry(item, end) for item in writes.puts],
        careful_puts=[ttl_policy.with_expiry(item, end) for item in writes.careful_puts],
        after=[ttl_policy.with_expiry(item, end) for item in writes.after],
    )


def experiment_until(item: Raw) -> int | None:
    """Returns when an experiment expires, in seconds since the epoch; None for never, and for one
    that is not deleted."""
    experiment = ExperimentItem.of(item)
    if experiment.stage != DELETED:
        return None
    retention_seconds = ttl_policy.kept_seconds("deleted_experiments")
    return (
        None
        if retention_seconds is None
        else experiment.last_update_time // 1000 + retention_seconds
    )


def run_until(item: Raw, experiment: Experiment, until: int | None) -> int | None:
    """Returns when a run expires, in seconds since the epoch; None for never. Only a deleted run
    expires: with its deleted experiment or, by the setting for ``deleted_runs``, some time after
    its own deletion, whichever is earlier.

    Args:
        until: when the experiment expires; None for never.
    """
    run = Run.of(item)
    if runs.stage(run, experiment) != DELETED:
        return None
    if run.epoch < experiment.epoch or run.deleted_time is None:
        return until
    retention_seconds = ttl_policy.kept_seconds("deleted_runs")
    own = None if retention_seconds is None else run.deleted_time // 1000 + retention_seconds
    return min((each for each in (own, until) if each is not None), default=None)
