"""Runs that are created with the jobs that fill them, and how long such jobs may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from mlcore import errors, reserved_tags
from mlcore.entities.evaluation.jobs import DEFAULT_SECONDS, MAX_SECONDS, Job
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import RUNNING, Run
from mlcore.entities.stages import ACTIVE, DELETED
from mlcore.limits.artifact_locations import join
from mlcore.repos.evaluation import jobs
from mlcore.repos.runs.core import creations, runs
from mlcore.repos.runs.core import writes as run_writes
from mlcore.run_names import generate

CALLS_PER_HOUR: Final = 2_000
"""A job gets an hour for so many calls of models: eight at a time, with 14 seconds each."""


def submit(job: Job, run_id: str, experiment: Experiment, tags: Mapping[str, str]) -> None:
    """Creates a running run and submits the job that will fill it.

    Raises:
        RequestLimitExceeded: the queue takes no jobs; the run is deleted again.
    """
    run = new_run(job, run_id, experiment, generate())
    run = run._replace(tags={**tags, **run.tags})
    creations.create(run, experiment, created_by=job.creator)
    try:
        jobs.submit([job])
    except errors.RequestLimitExceeded:
        run_writes.set_stage(runs.load(run_id, job.workspace), DELETED)
        raise


def new_run(job: Job, run_id: str, experiment: Experiment, name: str) -> Run:
    """Returns the running run of a job, which has no values but its name."""
    return Run(
        run_id=run_id,
        experiment_id=experiment.experiment_id,
        run_name=name,
        user_id=job.creator or "",
        status=RUNNING,
        start_time=job.creation_time,
        end_time=None,
        artifact_uri=join(experiment.artifact_location, f"{run_id}/artifacts"),
        lifecycle_stage=ACTIVE,
        metrics={},
        params={},
        tags={reserved_tags.RUN_NAME: name},
    )


def timeout(calls: int) -> float | None:
    """Returns the seconds that a job may take that asks models so many times; None for the default,
    which is an hour."""
    hours = math.ceil(calls / CALLS_PER_HOUR)
    return None if hours <= 1 else float(min(hours * DEFAULT_SECONDS, MAX_SECONDS))
