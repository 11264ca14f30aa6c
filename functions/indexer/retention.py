"""When deleted runs and experiments expire: pure functions over items and ``ttl_policy``."""

from __future__ import annotations

from typing import Final

from indexer.projections import Writes
from mlcore.db.expression import Raw
from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import DELETED
from mlcore.models.runs import Run
from mlcore.repos.runs import runs
from mlcore.repos.settings import ttl_policy

CHILD_SECONDS: Final = 2 * 86_400
"""What belongs to something expires so much later: DynamoDB promises no order, and what is still
there must be whole."""


def later(end: int) -> int:
    """When the children of something expire that expires at ``end``."""
    return end + CHILD_SECONDS


def with_end(writes: Writes, source: Raw | None) -> Writes:
    """Children of a run that is to expire are put with their end."""
    if source is None or "ttl" not in source:
        return writes
    end = later(int(source["ttl"]["N"]))
    return writes._replace(
        puts=[ttl_policy.marked(item, end) for item in writes.puts],
        careful_puts=[ttl_policy.marked(item, end) for item in writes.careful_puts],
        after=[ttl_policy.marked(item, end) for item in writes.after],
    )


def experiment_until(item: Raw) -> int | None:
    """When a deleted experiment expires, in seconds since the epoch; None for never."""
    if item["stage"]["S"] != DELETED:
        return None
    kept = ttl_policy.kept("deleted_experiments")
    return None if kept is None else int(item["last_update_time"]["N"]) // 1000 + kept


def run_until(item: Raw, experiment: Experiment, until: int | None) -> int | None:
    """When a run expires: with its deleted experiment (``until``), or after its own deletion."""
    if runs.stage(Run.of(item), experiment) != DELETED:
        return None
    if int(item["epoch"]["N"]) < experiment.epoch or "deleted_time" not in item:
        return until
    kept = ttl_policy.kept("deleted_runs")
    own = None if kept is None else int(item["deleted_time"]["N"]) // 1000 + kept
    return min((each for each in (own, until) if each is not None), default=None)
