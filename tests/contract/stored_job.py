"""A job that optimizes a prompt, as it is stored, and a request for each route of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.db.table import table
from mlcore.entities.evaluation.jobs import OPTIMIZE_PROMPT, PENDING, Job
from mlcore.ids import now_ms
from mlcore.repos.evaluation import jobs

_JOBS: Final = "/3.0/mlflow/prompt-optimization/jobs"
_OF_EXPERIMENT: Final = {"experiment_id": "{experiment}"}
REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "GET /3.0/jobs/{job_id}": {},
    "PATCH /3.0/jobs/cancel/{job_id}": {},
    "POST /3.0/jobs/search": {},
    "GET /3.0/mlflow/jobs/{job_id}": {},
    "PATCH /3.0/mlflow/jobs/cancel/{job_id}": {},
    f"GET {_JOBS}/search": _OF_EXPERIMENT,
    f"POST {_JOBS}/search": _OF_EXPERIMENT,
    f"GET {_JOBS}/{{job_id}}": {},
    f"POST {_JOBS}/{{job_id}}/cancel": {},
    f"DELETE {_JOBS}/{{job_id}}": {},
}


def optimization_job(job_id: str, names: Mapping[str, str]) -> Job:
    """A job that waits, of the run and the experiment in ``names``."""
    params = {
        "run_id": names["run"],
        "experiment_id": names["experiment"],
        "prompt_uri": "prompts:/p/1",
        "dataset_id": "",
        "optimizer_type": "metaprompt",
        "optimizer_config": {"guidelines": names["experiment"]},
        "scorer_names": [],
    }
    now = now_ms()
    return Job(job_id, "default", OPTIMIZE_PROMPT, params, PENDING, now, now)


def store(job: Job) -> None:
    table.put(*jobs.creation(job))
