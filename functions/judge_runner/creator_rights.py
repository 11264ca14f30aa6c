"""Checks whether the creator of a job still has the rights that the job needs.

A job is allowed when it is created, but it may wait in the queue, or need many calls of the
function. Meanwhile its creator may be deleted or lose rights, and somebody may move its run to
another experiment.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.evaluation.jobs import (
    INVOKE_EVALUATION,
    INVOKE_SCORER,
    ONLINE_SCORING,
    OPTIMIZE_PROMPT,
    Job,
)
from mlcore.entities.gateway import SavedKeyModel
from mlcore.http.gate import is_on
from mlcore.limits.evaluation.prompt_optimization import optimizer_settings
from mlcore.policies.access import Access
from mlcore.policies.background_callers import absent_caller
from mlcore.policies.jobs import (
    may_detect_issues,
    may_evaluate,
    may_judge,
    may_use_models,
    uses_endpoints,
)
from mlcore.policies.prompt_optimization import may_optimize
from mlcore.policies.shared_rules import are_in_workspace, on_runs
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.users import api_keys

Params = Mapping[str, Any]

RECHECK_SECONDS: Final = 60.0
"""While the job works, its creator's rights are checked again after this many seconds."""


class CreatorRights:
    """Checks the rights of a job's creator again and again while the job works. Its methods may be
    called from several threads."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._checked_at: float | None = None

    def check(self) -> None:
        """Checks the rights of the job's creator by :func:`check`, unless the last success is less
        than :data:`RECHECK_SECONDS` ago. Raises as :func:`check`. Must be called before each
        write."""
        with self._lock:
            now = time.monotonic()
            if self._checked_at is not None and now - self._checked_at < RECHECK_SECONDS:
                return
            check(self._job)
            self._checked_at = now


def check(job: Job) -> None:
    """Checks the current rights of a job's creator, with the same policies as the request that
    created the job. Does nothing if no login is required, or for online scoring that was set up
    without a login.

    Raises:
        PermissionDenied: the creator lacks a right, was deleted or deactivated; the API key of the
            request was revoked (an expired key is allowed); or the experiment was deleted or moved
            to another workspace.
    """
    is_ownerless = job.name == ONLINE_SCORING and job.creator is None
    if is_ownerless or not is_on(os.environ):
        return
    creator = _creator_of(job)
    if job.key_id is not None and api_keys.find(job.key_id) is None:
        raise errors.PermissionDenied("The API key by which this job was created was revoked.")
    is_allowed = creator.is_admin or _ALLOWED_BY_JOB_NAME[job.name](creator, job.params)
    if not is_allowed or not are_in_workspace(creator, [job.params["experiment_id"]]):
        raise errors.PermissionDenied(
            "The user who created this job no longer has the rights that it needs, or what it "
            "works on was deleted or moved."
        )


def writable_run(job: Job) -> StoredRun:
    """Reads and returns the run of a job, which the job is about to write. If the run was moved
    to another experiment, checks that the job's creator may update runs there.

    Raises:
        PermissionDenied: the creator may not update runs there.
        ResourceDoesNotExist: the run does not exist any more.
        RunMoved: the run was moved again during both attempts to read it.
    """
    try:
        run = runs.load(job.params["run_id"], job.workspace)
    except errors.RunMoved:  # this process had cached its former experiment
        run = runs.load(job.params["run_id"], job.workspace)
    is_moved = run.experiment.experiment_id != job.params["experiment_id"]
    if is_moved and is_on(os.environ) and not on_runs(_creator_of(job), [run.run_id], "update"):
        raise errors.PermissionDenied(
            "The run of this job was moved to an experiment in which the user who created the job "
            "may not update runs."
        )
    return run


def _creator_of(job: Job) -> Access:
    """Returns the rights that the creator of a job has now. Raises PermissionDenied if there is no
    such user any more."""
    creator = absent_caller(job.creator or "", job.creator_id, job.workspace)
    if creator is None:
        raise errors.PermissionDenied(
            "The user who created this job does not exist any more, or was deactivated."
        )
    return creator


def _may_judge(creator: Access, params: Params) -> bool:
    return may_judge(
        creator,
        params["experiment_id"],
        params["serialized_scorer"],
        params.get("scorer_name"),
        writes=params["log_assessments"],
    )


def _may_evaluate(creator: Access, params: Params) -> bool:
    names = [name for name in params.get("scorer_names", ()) if name is not None]
    return may_evaluate(creator, params["experiment_id"], params["serialized_scorers"], names)


def _may_detect_issues(creator: Access, params: Params) -> bool:
    key = params.get("saved_key")
    model = JobModel(params["endpoint_name"], SavedKeyModel(*key) if key else None)
    return may_detect_issues(creator, params["experiment_id"]) and may_use_models(creator, [model])


def _may_optimize(creator: Access, params: Params) -> bool:
    settings = optimizer_settings(params["optimizer_type"], params["optimizer_config"])
    models = [JobModel(params["prompt_endpoint"]), JobModel(settings.reflection_endpoint)]
    return (
        may_optimize(
            creator,
            params["experiment_id"],
            params["prompt_uri"],
            params["scorer_names"],
            params["dataset_id"],
        )
        and may_use_models(creator, models)
        and uses_endpoints(creator, params["serialized_scorers"])
    )


_ALLOWED_BY_JOB_NAME: Final[Mapping[str, Callable[[Access, Params], bool]]] = {
    INVOKE_SCORER: _may_judge,
    ONLINE_SCORING: _may_judge,
    INVOKE_EVALUATION: _may_evaluate,
    issue_detection.JOB_NAME: _may_detect_issues,
    OPTIMIZE_PROMPT: _may_optimize,
}
