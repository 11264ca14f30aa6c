"""Runs the job that optimizes a prompt with the optimizer ``metaprompt`` or ``gepa``. A prompt that
is better than the given one becomes a new version. Without scorers, which only ``metaprompt``
allows, the proposed prompt always does.

The job may be interrupted at any point: a later execution repeats its steps with the stored answers
of the models (:mod:`judge_runner.call_journal`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from judge_runner import evaluation_runs, optimization_run, prompt_evolution
from judge_runner.call_journal import CallJournal
from judge_runner.candidate_evaluation import CandidateEvaluation, Example, examples_of
from judge_runner.job_execution import JobExecution
from judge_runner.optimization_run import OptimizationRun, scores_of
from judge_runner.prompt_evolution import Candidate, Validated
from judge_runner.prompt_proposals import PromptProposals
from judge_runner.structured_questions import StructuredQuestions
from mlcore import errors, ids, reserved_tags
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.evaluation.prompt_optimization import (
    FINAL_SCORE,
    GEPA,
    INITIAL_SCORE,
    OPTIMIZER_CLASSES,
    OptimizerSettings,
)
from mlcore.judges.judge_model import Complete
from mlcore.limits.evaluation import prompt_optimization as limits
from mlcore.prompt_templates import PromptTemplate
from mlcore.repos.evaluation import dataset_records as evaluation_records
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.registry import model_versions

_PORTION_CHARACTERS: Final = 300_000
"""About the most characters of records in one item of the journal."""


class OptimizedPrompt(NamedTuple):
    """The prompt that a prompt optimizer found, if any, and the scores before and after."""

    text: str | None
    """The prompt to register; None if the scorers found none better than the given one."""
    initial: Candidate | None = None
    """The given prompt with its scores; None without scorers."""
    final: Candidate | None = None
    """The best prompt, or the one that was tried; None without scorers."""


def run(work: JobExecution, complete: Complete) -> dict[str, Any]:
    """Optimizes the prompt and finishes the run. Returns the job's result.

    Raises:
        InvalidParameterValue: a record or a scorer cannot be used with this prompt.
        ResourceDoesNotExist: prompt, dataset or run was deleted.
        BadRequest: the model of ``metaprompt`` gave no prompt that can be used.
        GatewayCallFailed: a model cannot be called.
        MlflowError: the table cannot be reached or is busy, or the job's creator lost a right.
        JobStopped, OutOfTime: see :mod:`judge_runner.job_execution`.
    """
    job = work.job
    source = model_versions.get(
        job.workspace, job.params["prompt_name"], job.params["prompt_version"]
    )
    template = PromptTemplate(
        source.version.tags.get(reserved_tags.PROMPT_TEXT, ""),
        source.version.tags.get(reserved_tags.PROMPT_TYPE) == reserved_tags.CHAT_PROMPT,
    )
    journal = CallJournal(work, complete)
    examples = _examples(job, journal, template)
    own_run = OptimizationRun(job, examples)
    summary = job.summary
    if summary is None:
        outcome = _optimize(work, journal, template, examples, own_run)
        metrics = optimization_run.loggable(_metrics(outcome))
        if outcome.text is None:
            summary = work.summarize(metrics)
        else:
            work.rights.check()
            draft = {"metrics": metrics, "time": ids.now_ms()}
            summary = optimization_run.register(work, source, outcome.text, draft)
    version = summary.get("prompt_version")
    if version is not None:
        own_run.link(version)
    evaluation_runs.finish(work, summary)
    return _result(job, version, summary["metrics"])


def _examples(job: Job, journal: CallJournal, template: PromptTemplate) -> list[Example]:
    """Returns the records of the job's dataset as its first execution has read them: later
    executions must repeat its steps, and the scores of all candidates be comparable."""
    if not job.params["dataset_id"]:
        return []
    records = _Records(job)
    contents: list[dict[str, Any]] = []
    for number, size in enumerate(journal.remember("portions", lambda: _portions(records.read()))):
        portion = partial(records.portion, len(contents), size)
        contents += journal.remember(f"records {number}", portion)
    return examples_of(contents, template.variables())


class _Records:
    """The contents of all records of a job's dataset, oldest first. They are read once, when they
    are needed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._contents: list[dict[str, Any]] | None = None

    def read(self) -> list[dict[str, Any]]:
        """Returns the contents. Raises ResourceDoesNotExist if the dataset was deleted,
        InvalidParameterValue if it has too many records."""
        if self._contents is None:
            dataset_id = self._job.params["dataset_id"]
            dataset = evaluation_datasets.find(self._job.workspace, dataset_id)
            if dataset is None:
                raise errors.ResourceDoesNotExist(
                    f"Evaluation dataset with id '{dataset_id}' not found"
                )
            records = list(evaluation_records.in_order(dataset, None, limits.MAX_RECORDS))
            limits.check_record_count(len(records))
            self._contents = [record.content for record in records]
        return self._contents

    def portion(self, begin: int, size: int) -> list[dict[str, Any]]:
        return self.read()[begin : begin + size]


def _portions(contents: Sequence[dict[str, Any]]) -> list[int]:
    """Returns how many of the records, in their order, are remembered together."""
    portions: list[int] = []
    room = 0
    for content in contents:
        length = len(json.dumps(content))
        if length > room or not portions:
            portions.append(0)
            room = _PORTION_CHARACTERS
        portions[-1] += 1
        room -= length
    return portions


def _optimize(
    work: JobExecution,
    journal: CallJournal,
    source: PromptTemplate,
    examples: Sequence[Example],
    own_run: OptimizationRun,
) -> OptimizedPrompt:
    params = work.job.params
    settings = limits.optimizer_settings(params["optimizer_type"], params["optimizer_config"])
    questions = StructuredQuestions(
        work.job, settings.reflection_endpoint, journal, settings.lm_parameters
    )
    proposals = PromptProposals(questions, source, examples, settings.guidelines)
    evaluation = CandidateEvaluation(work, journal, examples, is_chat=source.is_chat)
    log_candidate = partial(own_run.log_candidate, journal)
    if params["optimizer_type"] == GEPA:
        return _evolve(settings, source, proposals, evaluation, examples, log_candidate)
    if not examples:
        return OptimizedPrompt(proposals.propose(source.text, ()))
    return _improve_once(source, proposals, evaluation, examples, log_candidate)


def _evolve(
    settings: OptimizerSettings,
    source: PromptTemplate,
    proposals: PromptProposals,
    evaluation: CandidateEvaluation,
    examples: Sequence[Example],
    log_candidate: Validated,
) -> OptimizedPrompt:
    candidates = prompt_evolution.evolve(
        source.text,
        len(examples),
        settings.evolution,
        evaluation.evaluate,
        proposals.try_propose,
        log_candidate,
    )
    best = prompt_evolution.best(candidates)
    text = None if best is candidates[0] else best.text
    return OptimizedPrompt(text, candidates[0], best)


def _improve_once(
    source: PromptTemplate,
    proposals: PromptProposals,
    evaluation: CandidateEvaluation,
    examples: Sequence[Example],
    log_candidate: Validated,
) -> OptimizedPrompt:
    positions = range(len(examples))
    initial = Candidate(source.text, tuple(evaluation.evaluate(source.text, positions)))
    if not initial.evaluated[0].scores:
        return OptimizedPrompt(proposals.propose(source.text, initial.evaluated))
    log_candidate(0, initial, len(examples))
    text = proposals.propose(source.text, initial.evaluated)
    final = Candidate(text, tuple(evaluation.evaluate(text, positions)))
    log_candidate(1, final, 2 * len(examples))
    return OptimizedPrompt(text if final.score > initial.score else None, initial, final)


def _metrics(outcome: OptimizedPrompt) -> dict[str, float]:
    metrics = {}
    for prefix, candidate in ((INITIAL_SCORE, outcome.initial), (FINAL_SCORE, outcome.final)):
        if candidate is not None:
            metrics[prefix] = candidate.score
            for name, score in scores_of(candidate).items():
                metrics[f"{prefix}.{name}"] = score
    return metrics


def _result(job: Job, version: int | None, metrics: Mapping[str, float]) -> dict[str, Any]:
    params = job.params
    return {
        "run_id": params["run_id"],
        "source_prompt_uri": params["prompt_uri"],
        "optimized_prompt_uri": None
        if version is None
        else f"prompts:/{params['prompt_name']}/{version}",
        "optimizer_name": OPTIMIZER_CLASSES[params["optimizer_type"]],
        "initial_eval_score": metrics.get(INITIAL_SCORE),
        "final_eval_score": metrics.get(FINAL_SCORE),
        "dataset_id": params["dataset_id"],
        "scorer_names": params["scorer_names"],
    }
