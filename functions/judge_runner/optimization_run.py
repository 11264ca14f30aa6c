"""Stores the results of a job that optimizes a prompt: in its MLflow run each candidate prompt with
its scores, and in the registry the new version. A later execution of the job may repeat all of
it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from judge_runner import creator_rights
from judge_runner.call_journal import CallJournal
from judge_runner.candidate_evaluation import Example
from judge_runner.job_execution import JobExecution
from judge_runner.prompt_evolution import Candidate, mean
from mlcore import artifacts, errors, ids, reserved_tags
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Operation, table
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.evaluation.prompt_optimization import METRIC_CALLS, OPTIMIZER_CLASSES
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.registry import ModelVersion
from mlcore.limits.promptlab import LOGGED_ARTIFACTS_TAG
from mlcore.limits.runs import check_metric_key
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.registry.model_versions import NO_STAGE, READY, StoredModelVersion
from mlcore.repos.runs.core import run_writes, runs
from mlcore.repos.runs.history import metric_history
from mlcore.repos.runs.history.latest_point_text import latest_of, newer_texts
from mlcore.wire.json_text import load_json

_SCORE: Final = "eval_score"
_FOLDER: Final = "prompt_candidates"
_TABLE: Final = "eval_results.json"
_SCORES: Final = "scores.json"
_SOURCE: Final = "prompt-template"
"""The ``source`` of prompt versions, as MLflow's client sets it."""
_KEPT_TAGS: Final = (
    reserved_tags.IS_PROMPT,
    reserved_tags.PROMPT_TYPE,
    reserved_tags.PROMPT_MODEL_CONFIG,
    "_mlflow_prompt_response_format",
)
"""Tags that the new prompt version gets from the version that was optimized."""


class OptimizationRun:
    """The MLflow run of a job that optimizes a prompt."""

    def __init__(self, job: Job, examples: Sequence[Example]) -> None:
        """Reads the run and writes its params. Raises the errors of
        :func:`judge_runner.creator_rights.writable_run`, as the other methods do."""
        self._job = job
        self._examples = examples
        params = {
            "optimizer": OPTIMIZER_CLASSES[job.params["optimizer_type"]],
            "num_prompts": "1",
            "num_training_samples": str(len(examples)),
        }
        run = creator_rights.writable_run(job)
        self._listed = len(_list(run.document.texts("tags").get(LOGGED_ARTIFACTS_TAG)))
        """How many candidates the run lists. Their points and files were written before."""
        run_writes.write(run, lambda _: ({"params": params}, ()))
        self.link(job.params["prompt_version"])

    def link(self, version: int) -> None:
        """Links a version of the prompt to the run."""
        entry = {"name": self._job.params["prompt_name"], "version": str(version)}

        def add(run: runs.StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
            text = run.document.texts("tags").get(reserved_tags.LINKED_PROMPTS)
            linked = _list(text)
            if entry in linked:
                return {}, ()
            return {"tags": {reserved_tags.LINKED_PROMPTS: json.dumps([*linked, entry])}}, ()

        run_writes.write(creator_rights.writable_run(self._job), add, exclusive=True)

    def log_candidate(
        self, journal: CallJournal, number: int, candidate: Candidate, calls: int
    ) -> None:
        """Logs a candidate prompt that was evaluated on all records of the dataset: its scores as
        metrics and files, its text as a file. Does nothing if an earlier execution has logged it.
        If that execution was interrupted, writes the same points again.

        Args:
            journal: keeps the time of the points.
            calls: how often a candidate was evaluated on a record so far, in the whole job.
        """
        if number < self._listed:
            return
        scores = scores_of(candidate)
        run = creator_rights.writable_run(self._job)
        self._put_files(run, number, candidate, scores)
        now = journal.remember(f"time of candidate {number}", ids.now_ms)
        values = {
            _SCORE: candidate.score,
            **{f"{_SCORE}.{name}": score for name, score in scores.items()},
            METRIC_CALLS: float(calls),
        }
        points = [
            Metric(name, stored_value(value), now, number)
            for name, value in loggable(values).items()
        ]
        tables = [
            {"path": f"{_FOLDER}/iteration_{each}/{_TABLE}", "type": "table"}
            for each in range(number + 1)
        ]
        metric_history.write(run.experiment.experiment_id, run.run_id, points)
        tags = {LOGGED_ARTIFACTS_TAG: json.dumps(tables)}

        def decide(current: runs.StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
            newer = newer_texts(current.document.texts("metrics"), latest_of(points))
            return {"metrics": newer, "tags": tags}, ()

        run_writes.write(run, decide)

    def _put_files(
        self,
        run: runs.StoredRun,
        number: int,
        candidate: Candidate,
        scores: Mapping[str, float],
    ) -> None:
        if not artifacts.has_store():
            return
        names = list(scores)
        rows = [
            [
                self._examples[each.position].inputs,
                each.output,
                self._examples[each.position].expectations,
                each.score,
                *(each.scores[name] for name in names),
            ]
            for each in candidate.evaluated
        ]
        columns = ["inputs", "output", "expectation", "aggregate_score", *names]
        files = {
            _TABLE: json.dumps({"columns": columns, "data": rows}),
            _SCORES: json.dumps({"aggregate": candidate.score, "per_scorer": scores}, indent=2),
            f"{self._job.params['prompt_name']}.txt": candidate.text,
        }
        folder = f"{_FOLDER}/iteration_{number}"
        try:
            locate = partial(artifacts.locate, run.item.artifact_uri, self._job.workspace)
            table.parallel(
                [
                    partial(artifacts.store().put, locate(f"{folder}/{name}"), text.encode())
                    for name, text in files.items()
                ]
            )
        except errors.MlflowError as error:
            logger.warning(
                "the files of a candidate were not stored",
                extra={"job_id": self._job.job_id, "why": error.message},
            )


def scores_of(candidate: Candidate) -> dict[str, float]:
    """Returns the mean score of a candidate prompt by each scorer, over all dataset records."""
    names = candidate.evaluated[0].scores
    return {name: mean([each.scores[name] for each in candidate.evaluated]) for name in names}


def loggable(values: Mapping[str, float]) -> dict[str, float]:
    """Returns those of the scores (by scorer's name) whose names are valid names of metrics. Names
    of scorers may contain other characters."""
    valid_values = {}
    for name, value in values.items():
        with contextlib.suppress(errors.InvalidParameterValue):
            check_metric_key(name)
            valid_values[name] = value
    return valid_values


def register(work: JobExecution, source: StoredModelVersion, text: str, summary: Any) -> Any:
    """Registers the optimized prompt as the next version of the job's prompt, and stores the
    summary in the job, in one transaction: so a job registers one version, even if it is executed
    again. Returns the stored summary, which has the version's number as ``prompt_version``.

    Raises:
        ResourceDoesNotExist: the prompt was deleted.
        JobStopped: the job was cancelled; no version is registered.
    """
    tags: dict[str, str] = {
        key: source.version.tags[key] for key in _KEPT_TAGS if key in source.version.tags
    }
    now = ids.now_ms()
    draft = ModelVersion(
        name=source.version.name,
        version=0,
        creation_timestamp=now,
        last_updated_timestamp=now,
        description=None,
        user_id=None,
        current_stage=NO_STAGE,
        source=_SOURCE,
        storage_location=_SOURCE,
        run_id=None,
        run_link="",
        status=READY,
        status_message=None,
        tags={**tags, reserved_tags.PROMPT_TEXT: text},
    )

    def commit(storing: Callable[[dict[str, Any]], Operation]) -> None:
        model = registered_models.get(work.job.workspace, source.version.name)
        try:
            model_versions.create(
                model,
                draft,
                lambda version: [storing({**summary, "prompt_version": version.version})],
            )
        except AdditionalOperationFailed as failed:
            raise WriteConflict from failed

    return work.summarize_beside(commit)


def _list(text: str | None) -> list[Any]:
    try:
        linked = load_json(text or "[]")
    except ValueError:
        return []
    return linked if isinstance(linked, list) else []
