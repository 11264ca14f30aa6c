"""Decides whether the creator of a job may still have done what the job does.

A job is allowed when it is created, but it may wait in the queue, or need many calls of the
function. Meanwhile its creator may be deleted or lose rights.
"""

from __future__ import annotations

import os
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
from mlcore.policies.absent_callers import absent_caller
from mlcore.policies.access import Access
from mlcore.policies.jobs import (
    may_detect_issues,
    may_evaluate,
    may_judge,
    may_use_models,
    uses_endpoints,
)
from mlcore.policies.prompt_optimization import may_optimize
from mlcore.policies.requests import are_in_workspace
from mlcore.repos.users import api_keys

Params = Mapping[str, Any]


def check(job: Job) -> None:
    """Decides the rights of a job's creator anew, with the policies of the job's creation. Does
    nothing where no login is required, and for online scoring that was set up without one.

    Raises:
        PermissionDenied: the creator lacks a right, or does not exist any more; the API key of the
            request was revoked (not: has expired); or the experiment was moved to another
            workspace.
    """
    is_ownerless = job.name == ONLINE_SCORING and job.creator is None
    if is_ownerless or not is_on(os.environ):
        return
    creator = absent_caller(job.creator or "", job.creator_id, job.workspace)
    if creator is None:
        raise errors.PermissionDenied(
            "The user who created this job does not exist any more, or was deactivated."
        )
    if job.key_id is not None and api_keys.find(job.key_id) is None:
        raise errors.PermissionDenied("The API key by which this job was created was revoked.")
    is_allowed = creator.is_admin or _ALLOWED_BY_JOB_NAME[job.name](creator, job.params)
    if not is_allowed or not are_in_workspace(creator, [job.params["experiment_id"]]):
        raise errors.PermissionDenied(
            "The user who created this job no longer has the rights that it needs, or what it "
            "works on was deleted or moved."
        )


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
