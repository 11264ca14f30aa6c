"""The latest detection of issues in each experiment: an item that names its job, so that only one
detection runs at a time. It expires when the job can no longer run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, table
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.detection_priorities import Priorities
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.evaluation.jobs import FINAL, Creator, Job, as_of
from mlcore.entities.experiments import Experiment
from mlcore.ids import now_ms
from mlcore.models.evaluation import IssueDetection as DetectionItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import jobs

_SUBMISSION_MS: Final = 60_000
"""If the job of a detection does not exist, it is still being submitted for this time after the
detection began; later it counts as given up."""
_KEPT_SECONDS: Final = 2 * 24 * 3600


class RunningDetection(NamedTuple):
    job_id: str
    run_id: str


def new_job(
    experiment: Experiment,
    run_id: str,
    trace_ids: Sequence[str],
    priorities: Priorities,
    model: JobModel,
    creator: Creator,
) -> Job:
    """Returns a new job that detects issues in traces, without storing it.

    Args:
        run_id: the run to which the job will write its results.
        creator: the user in whose name the job calls the model.
    """
    params = {
        "experiment_id": experiment.experiment_id,
        "trace_ids": list(trace_ids),
        "categories": list(priorities.categories),
        "run_id": run_id,
        "instructions": priorities.instructions or None,
        **model.params,
        "username": creator.username,
    }
    return jobs.new(experiment.workspace, issue_detection.JOB_NAME, params, len(trace_ids), creator)


def run_tags(categories: Sequence[str], model: JobModel, traces: int) -> dict[str, str]:
    """Returns the tags of a new run that records a detection of issues."""
    return {
        reserved_tags.RUN_TYPE: issue_detection.RUN_TYPE,
        "categories": ",".join(categories),
        **model.tags,
        "total_traces": str(traces),
    }


def begin(experiment: Experiment, job_id: str, run_id: str) -> RunningDetection | None:
    """Records that a job will detect issues in an experiment, and returns None. If a detection is
    already running in the experiment, returns that one and writes nothing. Two round trips, three
    if an earlier detection is recorded that has ended.

    Raises:
        WriteConflict: another detection has begun at this moment.
    """
    put = beginning(experiment, job_id, run_id)
    if isinstance(put, RunningDetection):
        return put
    try:
        table.put(put.item, put.condition)
    except ConditionFailed as failed:
        raise WriteConflict from failed
    return None


def beginning(experiment: Experiment, job_id: str, run_id: str) -> RunningDetection | Put:
    """Returns the put of the item which records that a job detects issues in an experiment, for a
    transaction. If a detection is already running in the experiment, returns that one.
    :func:`begin` executes this put alone."""
    key = keys.issue_detection(experiment.workspace, experiment.experiment_id)
    raw = table.get(key)
    former = None if raw is None else DetectionItem.of(raw)
    if former is not None and _may_run(former.job_id, former.begun, experiment.workspace):
        return RunningDetection(former.job_id, former.run_id)
    now = now_ms()
    item = DetectionItem(
        PK=key.pk,
        SK=key.sk,
        job_id=job_id,
        run_id=run_id,
        begun=now,
        updated_at=now,
        ttl=now // 1000 + _KEPT_SECONDS,
    )
    unchanged = ConditionExpression()
    if former is None:
        unchanged.require_absent(DetectionItem.PK)
    else:
        unchanged.require_equal(DetectionItem.job_id, former.job_id)
    return Put(item.serialize(), unchanged)


def withdraw(experiment: Experiment, job_id: str) -> None:
    """Deletes the item which records that a job detects issues in an experiment, because the job
    was not submitted. Does nothing if the item names another job, which has begun since."""
    own = ConditionExpression()
    own.require_equal(DetectionItem.job_id, job_id)
    try:
        table.delete(keys.issue_detection(experiment.workspace, experiment.experiment_id), own)
    except ConditionFailed:
        return


def _may_run(job_id: str, begun: int, workspace: str) -> bool:
    now = now_ms()
    job = jobs.find(workspace, job_id)
    if job is None:
        return now < begun + _SUBMISSION_MS
    return as_of(job, now).status not in FINAL
