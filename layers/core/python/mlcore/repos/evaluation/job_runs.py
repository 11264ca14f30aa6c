"""Runs to which a job writes its results: they are created and ended with the job. Also computes
the timeouts of such jobs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from mlcore import errors, reserved_tags
from mlcore.db.table import Operation
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import DEFAULT_SECONDS, MAX_SECONDS, Job
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.runs import RUNNING, Run
from mlcore.environment import in_lambda
from mlcore.ids import new_ulid, now_ms
from mlcore.limits.artifact_locations import join
from mlcore.repos.evaluation import jobs
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import creations, endings, runs
from mlcore.run_names import generate

CALLS_PER_HOUR: Final = 2_000
"""A job gets an hour for this many calls of models: eight at a time, 14 seconds each."""
_AT_ONCE: Final = 8
"""Judgements of a job that run at the same time in AWS; on a laptop at most one per processor."""
_RUNNERS: Final = 5
"""Jobs that run at the same time: MaximumConcurrency of the judge runner in the template."""


def submit(job: Job, run: Run, experiment: Experiment, also: Sequence[Operation] = ()) -> None:
    """Queues a job, and then stores the job and its run in one transaction, so that neither of
    these is stored without the other.

    Args:
        also: further operations of the transaction.

    Raises:
        InvalidParameterValue: the params of the job are too large; nothing is stored.
        RequestLimitExceeded: the queue accepts no messages; nothing is stored.
        AdditionalOperationFailed: a condition of ``also`` does not hold; nothing is stored. Its
            ``position`` is one more than the index in ``also``, since the job comes first.
    """
    stored = jobs.creation(job)
    jobs.enqueue(job)
    creations.create(run, experiment, [stored, *also], created_by=job.creator)


def new_run(
    job: Job,
    experiment: Experiment,
    name: str = "",
    tags: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Returns a new run to which a background job will write its results, without storing the run.
    Its status is RUNNING, its id ``job.params["run_id"]``. Without a name it gets a random one."""
    run = _run(job.params["run_id"], job.creator, job.creation_time, experiment)
    name = name or run.run_name
    return run._replace(run_name=name, tags={**tags, reserved_tags.RUN_NAME: name})


def ended_run(
    creator: str | None, time: int, experiment: Experiment, status: str, tags: Mapping[str, str]
) -> Run:
    """Returns a new run, without storing it, for a scheduled issue detection that needed no job
    (such as one without traces). Its id and name are random; it begins and ends at the given time,
    in ms since the epoch."""
    run = _run(new_ulid(), creator, time, experiment)
    return run._replace(status=status, end_time=time, tags={**tags, **run.tags})


def _run(run_id: str, creator: str | None, time: int, experiment: Experiment) -> Run:
    name = generate()
    return Run(
        run_id=run_id,
        experiment_id=experiment.experiment_id,
        run_name=name,
        user_id=creator or "",
        status=RUNNING,
        start_time=time,
        end_time=None,
        artifact_uri=join(experiment.artifact_location, f"{run_id}/artifacts"),
        lifecycle_stage=ACTIVE,
        metrics={},
        params={},
        tags={reserved_tags.RUN_NAME: name},
    )


def end(job: Job, status: str, tags: Mapping[str, str] = MappingProxyType({})) -> None:
    """Ends the MLflow run of a job now and sets the run's tags. Does nothing if the run does not
    exist, was deleted or has ended. The run is also found if its experiment was moved to another
    workspace. A run that was moved to another experiment gets no tags, since the job's creator may
    have no rights there."""
    try:
        try:
            run = runs.load(job.params["run_id"], job.workspace)
        except errors.ResourceDoesNotExist:
            workspace = experiments.workspace_of(job.params["experiment_id"])
            if workspace in (None, job.workspace):
                return
            run = runs.load(job.params["run_id"], workspace)
        is_moved = run.experiment.experiment_id != job.params["experiment_id"]
        endings.end(run, status, now_ms(), tags={} if is_moved else tags)
    except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
        return  # it was deleted


def timeout(calls: int, code_seconds: float = 0) -> float | None:
    """Returns the timeout of a job in seconds; None for the default of one hour.

    Args:
        calls: how many calls of models the job makes.
        code_seconds: how long the job's code scorers may run.
    """
    hours = max(1, math.ceil(calls / CALLS_PER_HOUR))
    if hours == 1 and not code_seconds:
        return None
    return float(min(hours * DEFAULT_SECONDS + code_seconds, MAX_SECONDS))


def code_seconds(scorers: Iterable[Any], subjects: Sequence[int]) -> float:
    """Returns how many seconds the code scorers among ``scorers`` need at most to finish all jobs
    of a request. Only a few of the jobs, and of the judgements of a job, run at the same time.

    Args:
        subjects: for each of the jobs, how many traces or sessions each scorer judges.
    """
    of_one = sum(scorer.seconds() for scorer in scorers if isinstance(scorer, CodeScorer))
    most = max(subjects, default=0)
    if in_lambda():
        rounds = math.ceil(len(subjects) / _RUNNERS) * math.ceil(most / _AT_ONCE)
    else:
        in_jobs = min(len(subjects), _RUNNERS) * min(most, _AT_ONCE)
        at_once = max(1, min(in_jobs, max(2, os.cpu_count() or 1)))
        rounds = math.ceil(sum(subjects) / at_once)
    return rounds * of_one
