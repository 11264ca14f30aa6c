"""Converts stored experiments, runs and points to rows of ``experiments_latest``, ``runs_latest``
and ``run_metrics_history``, without reading anything. The columns are those of Databricks' system
tables.

Times are milliseconds since 1970 here, and microseconds in the tables.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from hashlib import blake2b
from typing import Final, NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.entities.metrics import Metric
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import rewinds
from mlcore.repos.runs.history.rewinds import Rewind

EARLIEST_MS: Final = -62_135_596_800_000
LATEST_MS: Final = 253_402_300_799_999
"""The latest time in the tables: the end of the year 9999. MLflow accepts any 64-bit number as a
time, but not every reader of the tables can show years outside of 1 to 9999. Such a time is
replaced by the nearest one in this range."""


class ExperimentRow(NamedTuple):
    """A row of ``experiments_latest``, without the column of the AWS account."""

    experiment_id: str
    workspace_id: str
    name: str
    create_time: int
    update_time: int
    delete_time: int | None


class RunRow(NamedTuple):
    """A row of ``runs_latest``, without the column of the AWS account and without those metric
    columns that are computed from the history.

    ``created_by`` is the user who was logged in when the run was created; without login, the user
    that the client named. ``latest`` holds the latest value of each metric, as text
    (:func:`double_text`). ``rewinds`` says which points of its history were deleted.
    """

    run_id: str
    experiment_id: str
    workspace_id: str
    run_name: str
    created_by: str | None
    status: str
    start_time: int
    end_time: int | None
    update_time: int
    delete_time: int | None
    params: dict[str, str]
    tags: dict[str, str]
    latest: dict[str, str]
    rewinds: tuple[Rewind, ...]


class PointRow(NamedTuple):
    """A row of ``run_metrics_history``, without the columns of the AWS account and of the
    workspace, which is the experiment's."""

    experiment_id: str
    run_id: str
    metric_name: str
    metric_step: int
    metric_time: int
    metric_value: str
    insert_time: int
    record_id: str


def experiment_row(experiment: Experiment, updated_ms: int) -> ExperimentRow:
    """Converts an experiment to its row of ``experiments_latest``.

    Args:
        updated_ms: when the experiment's item was last written.
    """
    return ExperimentRow(
        experiment_id=experiment.experiment_id,
        workspace_id=experiment.workspace,
        name=experiment.name,
        create_time=within(experiment.creation_time),
        update_time=within(updated_ms),
        delete_time=deleted_ms(experiment),
    )


def deleted_ms(experiment: Experiment) -> int | None:
    """Returns when an experiment was deleted, in milliseconds; None if it is not deleted. This is
    the time of its last update, because a deleted experiment cannot be updated."""
    if experiment.lifecycle_stage != DELETED:
        return None
    return within(experiment.last_update_time)


def run_row(stored: StoredRun) -> RunRow:
    """Converts a run's current state to its row in the system tables. A run that was deleted
    together with its experiment has the experiment's deletion time."""
    item, experiment = stored.item, stored.experiment
    updated = within(item.updated_at or 0)
    deleted = None
    if stored.stage == DELETED:
        own = item.deleted_time if item.stage == DELETED else None
        with_experiment = deleted_ms(experiment) if item.epoch < experiment.epoch else None
        deleted = with_experiment if own is None else within(own)
        if with_experiment is not None:
            updated = max(updated, with_experiment)
        deleted = updated if deleted is None else deleted
    return RunRow(
        run_id=item.run_id,
        experiment_id=item.experiment_id,
        workspace_id=experiment.workspace,
        run_name=item.run_name or "",
        created_by=item.created_by or item.user_id or None,
        status=item.status,
        start_time=within(item.start_time or 0),
        end_time=None if item.end_time is None else within(item.end_time),
        update_time=updated,
        delete_time=deleted,
        params=stored.document.texts("params"),
        tags=stored.document.texts("tags"),
        latest={
            key: double_text(metric.value) for key, metric in runs.metrics(stored.document).items()
        },
        rewinds=rewinds.of(item).last,
    )


def point_row(experiment_id: str, run_id: str, point: Metric, inserted_ms: int) -> PointRow:
    """Converts a metric point of a run to its row of the system table ``run_metrics_history``.

    Args:
        inserted_ms: when the stored item with the point was written.
    """
    return PointRow(
        experiment_id=experiment_id,
        run_id=run_id,
        metric_name=point.key,
        metric_step=point.step,
        metric_time=within(point.timestamp),
        metric_value=double_text(point.value),
        insert_time=within(inserted_ms),
        record_id=record_id(run_id, point),
    )


def record_id(run_id: str, point: Metric) -> str:
    """Returns the id of a metric point, 24 characters of Base64. It is a digest of MLflow's
    identity of a point: run, metric, step, timestamp and value."""
    identity = json.dumps(
        [run_id, point.key, point.step, point.timestamp, double_text(point.value)]
    )
    return b64encode(blake2b(identity.encode(), digest_size=16).digest()).decode()


def double_text(value: float) -> str:
    """Returns the shortest text that is exactly this double. All NaN give the same text, and so do
    both zeros."""
    return "nan" if math.isnan(value) else repr(value + 0.0)


def within(ms: int) -> int:
    return min(max(ms, EARLIEST_MS), LATEST_MS)
