"""The JSON of jobs that optimize prompts, beside the one that MLflow's server makes of the same
job."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from mlcore.entities.evaluation.jobs import (
    CANCELED,
    FAILED,
    OPTIMIZE_PROMPT,
    PENDING,
    RUNNING,
    SUCCEEDED,
    TIMEOUT,
    Job,
)
from mlcore.responses.evaluation import prompt_optimization as responses

pytest.importorskip("mlflow")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mlflow.entities._job import Job as StockJob
    from mlflow.entities._job_status import JobStatus
    from mlflow.server import handlers
    from mlflow.utils.proto_json_utils import message_to_json

pytestmark = pytest.mark.e2e

PARAMS: dict[str, Any] = {
    "run_id": "r",
    "experiment_id": "7",
    "prompt_uri": "prompts:/qa/1",
    "dataset_id": "d-1",
    "optimizer_type": "gepa",
    "optimizer_config": {"reflection_model": "gateway:/e", "max_metric_calls": 30},
    "scorer_names": ["Safety", "own"],
}
RESULT = {"run_id": "r", "optimized_prompt_uri": "prompts:/qa/2"}


@pytest.mark.parametrize(
    ("status", "result", "error"),
    [
        (PENDING, None, None),
        (RUNNING, None, None),
        (SUCCEEDED, RESULT, None),
        (SUCCEEDED, {**RESULT, "optimized_prompt_uri": None}, None),
        (FAILED, None, "It failed."),
        (TIMEOUT, None, None),
        (CANCELED, None, None),
    ],
)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dataset_id": "", "scorer_names": [], "optimizer_type": "metaprompt"},
        {"optimizer_config": None},
    ],
)
def test_a_job_is_shown_alike(
    status: str, result: Any, error: str | None, changes: dict[str, Any]
) -> None:
    params = {**PARAMS, **changes}
    ours = Job(
        "j", "default", OPTIMIZE_PROMPT, params, status, 5, 6, result=result, error_message=error
    )
    kind: Any = StockJob
    stock = kind(
        job_id="j",
        creation_time=5,
        job_name=OPTIMIZE_PROMPT,
        params=json.dumps(params),
        timeout=None,
        status=JobStatus.from_str(status),
        result=json.dumps(result) if result else None,
        retry_count=0,
        last_update_time=6,
        error_message=error,
    )
    made = handlers._build_prompt_optimization_job_from_entity(stock)
    assert responses.job(ours) == json.loads(message_to_json(made))
