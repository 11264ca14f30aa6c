"""Routes of the jobs that optimize prompts."""

from __future__ import annotations

from functools import partial

from evaluation import optimization_creation, optimization_jobs
from evaluation import optimization_messages as m
from mlcore.http import delete, get, post

_JOBS = "/mlflow/prompt-optimization/jobs"
_JOB = f"{_JOBS}/{{job_id}}"
_get, _post, _delete = (partial(verb, version="3.0", since="3.9") for verb in (get, post, delete))

OPTIMIZATION_RPCS = (
    _post(
        _JOBS,
        m.CreatePromptOptimizationJob,
        optimization_creation.create_job,
        "prompt_optimization.create",
        deviation="The models of a prompt optimization must be gateway endpoints; a scorer or "
        "prompt that a job cannot use gets 400 at once.",
    ),
    _post(
        f"{_JOBS}/search",
        m.SearchPromptOptimizationJobs,
        optimization_jobs.search_jobs,
        "prompt_optimization.search",
        cost=1,
        reads=True,
    ),
    _get(
        f"{_JOBS}/search",
        m.SearchPromptOptimizationJobs,
        optimization_jobs.search_jobs,
        "prompt_optimization.search",
        cost=1,
    ),
    _get(
        _JOB,
        m.GetPromptOptimizationJob,
        optimization_jobs.get_job,
        "prompt_optimization.read_job",
        cost=2,
    ),
    _post(
        f"{_JOB}/cancel",
        m.CancelPromptOptimizationJob,
        optimization_jobs.cancel_job,
        "prompt_optimization.update_job",
        cost=5,
    ),
    _delete(
        _JOB,
        m.DeletePromptOptimizationJob,
        optimization_jobs.delete_job,
        "prompt_optimization.delete_job",
        cost=4,
    ),
)
