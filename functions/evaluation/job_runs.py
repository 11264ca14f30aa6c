"""Runs that are created with the jobs that fill them."""

from __future__ import annotations

from collections.abc import Mapping

from mlcore import errors, reserved_tags
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import RUNNING, Run
from mlcore.entities.stages import ACTIVE, DELETED
from mlcore.limits.artifact_locations import join
from mlcore.repos.evaluation import jobs
from mlcore.repos.runs.core import creations, runs
from mlcore.repos.runs.core import writes as run_writes
from mlcore.run_names import generate


def submit(job: Job, run_id: str, experiment: Experiment, tags: Mapping[str, str]) -> None:
    """Creates a running run and submits the job that will fill it.

    Raises:
        RequestLimitExceeded: the queue takes no jobs; the run is deleted again.
    """
    name = generate()
    run = Run(
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
        tags={**tags, reserved_tags.RUN_NAME: name},
    )
    creations.create(run, experiment, created_by=job.creator)
    try:
        jobs.submit([job])
    except errors.RequestLimitExceeded:
        run_writes.set_stage(runs.load(run_id, job.workspace), DELETED)
        raise
