"""Evaluates a candidate of a prompt: fills it with the inputs of records, asks the prompt's model,
and lets the scorers of the job rate the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from judge_runner import scorer_source_check, scoring, trace_scoring
from judge_runner.assessing import Task
from judge_runner.call_journal import CallJournal
from judge_runner.job_execution import JobExecution, JobStopped, OutOfTime
from judge_runner.prompt_evolution import Evaluated, mean
from judge_runner.scoring import Scoring
from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.traces import Assessment
from mlcore.judges import trace_content
from mlcore.judges.trace_content import Subject
from mlcore.judges.verdicts import text_of
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.prompt_templates import PromptTemplate

_ABOUT_THE_CHAT: Final = frozenset((400, 413, 422))
"""Statuses by which a provider refuses one chat because of its content. Other chats may succeed."""
_EXPECTED: Final = "expected_response"


class Example(NamedTuple):
    """A record of a dataset as the optimization uses it: inputs and expectations."""

    inputs: dict[str, Any]
    expectations: dict[str, Any]


class _Rating(NamedTuple):
    """The parts of an assessment that the optimization uses. They can be stored as JSON."""

    value: Any
    error: dict[str, Any] | None
    rationale: str | None


def examples_of(records: Sequence[Mapping[str, Any]], variables: set[str]) -> list[Example]:
    """Converts the contents of records of an evaluation dataset to examples for the optimization of
    a prompt. For a record without expectations, its outputs are what is expected.

    Raises:
        InvalidParameterValue: a record lacks inputs, or one of the prompt's variables.
    """
    examples = []
    for number, record in enumerate(records):
        inputs = record.get("inputs")
        if not isinstance(inputs, dict) or not inputs:
            raise errors.InvalidParameterValue(
                f"Record {number} is missing required 'inputs' field or it is empty"
            )
        missing = sorted(variables - set(inputs))
        if missing:
            raise errors.InvalidParameterValue(
                f"The inputs of record {number} lack variables of the prompt: {missing}"
            )
        expected = record.get("expectations") or {_EXPECTED: record.get("outputs")}
        examples.append(Example(inputs, expected))
    return examples


class CandidateEvaluation:
    """Evaluates candidate prompts on the examples of an optimization job, several examples in
    parallel."""

    def __init__(
        self,
        work: JobExecution,
        journal: CallJournal,
        examples: Sequence[Example],
        *,
        is_chat: bool,
    ) -> None:
        self._work = work
        self._journal = journal
        self._examples = examples
        self._is_chat = is_chat
        self._interruption: Exception | None = None
        texts = work.job.params["serialized_scorers"]
        parsed = [parse_scorer(json.loads(text)) for text in texts]
        sources = scorer_source_check.of_job(work.job, parsed, texts)
        tasks = [Task(work.job.job_id, scorer, None) for scorer in parsed]
        self._scorers: list[tuple[str, Scoring, str | None]] = [
            (
                task.judge.name,
                scoring.new_scoring(task, work, self._complete, source=source, expectations=True),
                text if isinstance(task.judge, CodeScorer) else None,
            )
            for task, source, text in zip(tasks, sources, texts, strict=True)
        ]

    def evaluate(self, text: str, positions: Sequence[int]) -> list[Evaluated]:
        """Returns the evaluations of a candidate prompt on the examples at these positions. Without
        scorers, each score is 0.

        Raises:
            InvalidParameterValue: a scorer failed, or its answer is no number. Code scorers raise
                the other errors of :meth:`CodeScoring.assess_trace`, too.
            GatewayCallFailed: the prompt's model cannot be called.
            TemporarilyUnavailable, RequestLimitExceeded: the table cannot be reached or is busy.
            OutOfTime, JobStopped: see :meth:`JobExecution.check`.
        """
        evaluated: dict[int, Evaluated] = {}

        def evaluate_one(position: int) -> None:
            self._work.check()
            evaluated[position] = self._evaluate(PromptTemplate(text, self._is_chat), position)
            self._work.record_done()

        trace_scoring.run_in_parallel(evaluate_one, positions)
        return [evaluated[position] for position in positions]

    def _evaluate(self, template: PromptTemplate, position: int) -> Evaluated:
        example = self._examples[position]
        output = self._predict(template, example)
        subject = _subject(example, output)
        scores: dict[str, float] = {}
        rationales: dict[str, str] = {}
        for name, functions, code in self._scorers:
            if code is None or functions.priced is None:
                made = list(map(_rating, functions.trace(subject)))
            else:
                made = self._judge(code, functions.priced, example, output, subject)
            if self._interruption is not None:
                raise self._interruption
            scores[name] = _score(name, made)
            if made[0].rationale:
                rationales[name] = made[0].rationale
        score = mean(list(scores.values())) if scores else 0.0
        return Evaluated(position, output, score, scores, rationales)

    def _judge(
        self,
        code: str,
        priced: Callable[[Subject], tuple[list[Assessment], float]],
        example: Example,
        output: str,
        subject: Subject,
    ) -> list[_Rating]:
        """Returns a code scorer's ratings of an answer. If an earlier execution of the job has
        stored them, the scorer does not run again."""

        def judge() -> tuple[list[_Rating], float]:
            made, dollars = priced(subject)
            return list(map(_rating, made)), dollars

        request = [code, example.inputs, example.expectations, output]
        return [_Rating(*fields) for fields in self._journal.judge(request, judge)]

    def _predict(self, template: PromptTemplate, example: Example) -> str:
        """Returns the model's answer to the filled prompt. As in MLflow, a chat that the provider
        refuses has its error as the answer, which is scored."""
        job = self._work.job
        chat = {"messages": template.filled(example.inputs)}
        endpoint = job.params["prompt_endpoint"]
        try:
            return text_of(self._journal.complete(job.workspace, endpoint, chat, job.creator))
        except errors.GatewayCallFailed as error:
            if error.status not in _ABOUT_THE_CHAT:
                raise
            return f"Failed to invoke the predict_fn with {example.inputs}: {error.message}"

    def _complete(
        self, workspace: str, endpoint: str, chat: Mapping[str, Any], username: str | None
    ) -> dict[str, Any]:
        """Completes a chat of a judge. A judge turns most errors into assessments, so an error
        that must stop the job is stored in ``_interruption`` and raised after the judgement."""
        try:
            return self._journal.complete(workspace, endpoint, chat, username)
        except (OutOfTime, JobStopped, errors.TemporarilyUnavailable) as error:
            self._interruption = error
            raise


def _rating(made: Assessment) -> _Rating:
    return _Rating(made.value, made.error, made.rationale)


def _subject(example: Example, output: str) -> Subject:
    """Returns a trace with one span that holds the inputs and the answer, and the expectations."""
    subject = trace_content.subject_of_call(example.inputs, output)
    expected = tuple(_expectation(name, value) for name, value in example.expectations.items())
    return subject._replace(trace=subject.trace._replace(assessments=expected))


def _expectation(name: str, value: Any) -> Assessment:
    return Assessment(
        assessment_id="",
        trace_id="",
        name=name,
        kind="expectation",
        value=value,
        error=None,
        source_type="HUMAN",
        source_id=None,
        create_time=0,
        last_update_time=0,
        run_id=None,
        span_id=None,
        rationale=None,
        metadata=None,
        overrides=None,
        valid=True,
    )


def _score(name: str, made: Sequence[_Rating]) -> float:
    """Returns a scorer's result as a number: yes is 1, no is 0. Raises InvalidParameterValue."""
    if len(made) != 1:
        raise _not_numerical(name, "list")
    (rating,) = made
    if rating.error is not None:
        message = rating.error.get("error_message") or "it gave no reason"
        raise errors.InvalidParameterValue(f"Scorer '{name}' failed: {message}")
    value = rating.value
    if value in ("yes", "no"):
        return float(value == "yes")
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    raise _not_numerical(name, type(value).__name__)


def _not_numerical(name: str, kind: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        f"Scorers [{name} (type: {kind})] return non-numerical values that cannot be "
        "automatically aggregated. Please provide an `objective` function to aggregate "
        "these values into a single score for optimization."
    )
