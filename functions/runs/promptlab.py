"""Creates the run in which the UI's prompt lab saves a prompt that was tried on a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import uuid4

from mlcore import errors
from mlcore.artifacts import locate, store
from mlcore.db.table import table
from mlcore.entities.runs import Run
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.limits import promptlab as limits
from mlcore.limits.runs import check_log_batch
from mlcore.observability import logger
from mlcore.repos.runs.core import runs
from mlcore.responses import runs as responses
from runs import messages as m
from runs import promptlab_files, service

LOGGED_ARTIFACTS: Final = json.dumps([{"path": promptlab_files.TABLE, "type": "table"}])

Texts = Mapping[str, Mapping[str, str]]


def create_promptlab_run(message: m.CreatePromptlabRun, request: Request) -> dict[str, Any]:
    """Creates a prompt lab run with its files, params and tags. Takes four round trips to the
    table: two create the run; after its files are stored, one reads it and one writes its params,
    tags, status and end time.

    As in MLflow, an error after the run was created (a param that breaks a rule, files that the
    store refuses) makes the run FAILED, and the request still succeeds. Sending the request twice
    creates two runs.
    """
    prompt = limits.prompt_of(message)
    run = service.new_run(
        m.CreateRun(
            experiment_id=limits.experiment_of(message),
            user_id=message.user_id if message.has("user_id") else limits.UNKNOWN_USER,
            run_name=message.run_name,
            start_time=message.start_time if message.has("start_time") else now_ms(),
            tags=message.tags,
        ),
        request,
    )
    texts, status = _store_files(prompt, run, request)
    try:
        ended_run = _end(run, status, texts, request)
    except errors.InvalidParameterValue as error:
        _log_failure(run, error)
        ended_run = _end(run, "FAILED", {}, request)
    return {"run": responses.run(ended_run)}


def _store_files(prompt: limits.Prompt, run: Run, request: Request) -> tuple[Texts, str]:
    """Stores the files. Returns the params and tags to log, and the status that the run ends
    with."""
    created = datetime.now(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    model = {
        "run_id": run.run_id,
        "artifact_path": promptlab_files.MODEL,
        "utc_time_created": created,
        "model_uuid": uuid4().hex,
        "flavors": {},
    }
    tags = {
        limits.LOGGED_ARTIFACTS_TAG: LOGGED_ARTIFACTS,
        limits.SOURCE_TYPE_TAG: limits.SOURCE_TYPE,
        service.LOGGED_MODELS_TAG: json.dumps([model]),
    }
    try:
        batch = check_log_batch(run.run_id, (), prompt.logged(), ())
    except errors.MlflowError as error:
        _log_failure(run, error)
        return {}, "FAILED"
    texts = {"params": dict(batch.params), "tags": tags}
    files = promptlab_files.files_of(prompt, model)
    try:
        location_of = partial(locate, run.artifact_uri, request.workspace)
        table.parallel([partial(store().put, location_of(path), files[path]) for path in files])
    except errors.MlflowError as error:
        _log_failure(run, error)
        return texts, "FAILED"
    return texts, "FINISHED"


def _end(run: Run, status: str, texts: Texts, request: Request) -> Run:
    stored = runs.load(run.run_id, request.workspace)
    return service.update_info(stored, status, now_ms(), None, texts)


def _log_failure(run: Run, error: errors.MlflowError) -> None:
    logger.warning(
        "a run of the prompt lab failed", extra={"run_id": run.run_id, "why": error.message}
    )
