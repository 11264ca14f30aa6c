"""Makes a judge's model assess a trace or a session, and converts answers of scorers to
assessments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore import errors, reserved_tags
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.traces import Assessment, Trace
from mlcore.ids import now_ms
from mlcore.judges import builtin, prompts, rule_scorers, trace_content, verdicts
from mlcore.judges.builtin import Question
from mlcore.judges.judge_model import JudgeModel
from mlcore.judges.trace_content import Subject
from mlcore.judges.verdicts import Verdict
from mlcore.observability import logger
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import run_assessments, traces
from mlcore.repos.traces.traces import StoredTrace, TraceChange

_PREFIX: Final = "mlflow.assessment."
_PASSING: Final = (errors.TemporarilyUnavailable, errors.RequestLimitExceeded)
"""Errors of this server, not of the model. Limits and budgets of the gateway are other errors."""


class Task(NamedTuple):
    """What a scorer's assessments are made for: a job and its scorer, and the evaluation run if
    there is one."""

    task_id: str
    """Part of the assessments' ids: repeating a task with the same id writes no second
    assessment."""
    judge: Judge | CodeScorer
    version: int | None
    """The version of the registered scorer; None for one that is not registered."""
    run_id: str | None = None
    """The evaluation run that the task belongs to."""
    extra: Mapping[str, str] = {}
    """Metadata that all assessments of the task get."""


def assess_trace(task: Task, judge: Judge, subject: Subject, chat: JudgeModel) -> list[Assessment]:
    """Returns the judge's assessments of a trace; a single assessment with the error if the judge
    fails. Raises TemporarilyUnavailable and RequestLimitExceeded: the table or the secrets cannot
    be reached, so the job must be repeated."""
    try:
        if judge.builtin:
            questions = builtin.questions_about_trace(judge, subject)
        else:
            questions = [prompts.question_about_trace(judge, subject)]
        made = [
            _feedback(task, judge, subject, number, question, _ask(judge, chat, question))
            for number, question in enumerate(questions)
        ]
    except _PASSING:
        raise
    except Exception as error:  # any error: the other traces must still be assessed
        return [failure(task, subject, error)]
    of_spans = any(question.span_id for question in questions)
    return _with_precision(task, judge, subject, made) if of_spans else made


def assess_by_rule(task: Task, judge: Judge, subject: Subject) -> list[Assessment]:
    """Returns the assessment of a trace by a scorer that is a rule and asks no model."""
    answer = trace_content.outputs(subject)
    try:
        verdict = rule_scorers.verdict(
            judge, None if answer is None else trace_content.output_text(answer)
        )
    except errors.MlflowError as error:
        return [failure(task, subject, error)]
    made = new_assessment(task, subject, 0, verdict.value, {})
    return [made._replace(rationale=verdict.rationale)]


def assess_session(
    task: Task, judge: Judge, session: Sequence[Subject], chat: JudgeModel
) -> list[Assessment]:
    """Returns a judge's only assessment of a session of traces, on the session's first trace. If
    the judge fails, the assessment holds the error. Raises the same errors as assess_trace()."""
    first = trace_content.chronological(session)[0]
    session_task = of_session(task, first)
    try:
        ask = builtin.question_about_session if judge.builtin else prompts.question_about_session
        question = ask(judge, session)
        verdict = _ask(judge, chat, question)
        return [_feedback(session_task, judge, first, 0, question, verdict)]
    except _PASSING:
        raise
    except Exception as error:  # any error: the other sessions must still be assessed
        return [failure(session_task, first, error)]


def of_session(task: Task, first: Subject) -> Task:
    """Returns a copy of a task that judges a session of traces. The copy stores the session's id in
    the metadata of all its assessments.

    Args:
        first: the first trace of the session.
    """
    return task._replace(extra={**task.extra, reserved_tags.TRACE_SESSION: first.session or ""})


def existing_assessments(task: Task, trace: Trace) -> list[Assessment]:
    """Returns the assessments of a trace that an earlier execution of the judge's task has already
    written."""
    prefix = judgement_id(task, trace.trace_id)
    return [
        assessment
        for assessment in trace.assessments
        if assessment.assessment_id.startswith(prefix)
    ]


def judgement_id(task: Task, trace_id: str) -> str:
    """Returns the beginning of the ids of all assessments that a judge's task makes of a trace."""
    return _id(task, trace_id, 0)[:-4]


def write(stored: StoredTrace, made: Sequence[Assessment]) -> None:
    """Adds assessments to their trace; existing ones are not changed. If the trace has been deleted
    meanwhile, stores no assessment."""
    texts = {each.assessment_id: trace_assessments.text(each) for each in made}

    def add(current: StoredTrace) -> TraceChange | None:
        existing = current.document.texts("assessments")
        new = {key: text for key, text in texts.items() if key not in existing}
        return TraceChange(current.info, {"assessments": new}) if new else None

    run_assessments.record(stored.trace_id, made)
    traces.write(stored, add)


def _ask(judge: Judge, chat: JudgeModel, question: Question) -> Verdict:
    try:
        answer = chat.ask(prompts.chat(judge, question))
    except _PASSING:
        raise
    except errors.MlflowError as error:
        raise errors.InvalidParameterValue(
            f"Failed to invoke judge model: {error.message}"
        ) from error
    return verdicts.parse_verdict(judge, answer)


def _feedback(
    task: Task,
    judge: Judge,
    subject: Subject,
    number: int,
    question: Question,
    verdict: Verdict,
) -> Assessment:
    tokens = {
        "judgeInputTokens": verdict.input_tokens,
        "judgeOutputTokens": verdict.output_tokens,
    }
    metadata = {
        f"{_PREFIX}{name}": str(count) for name, count in tokens.items() if count is not None
    }
    if question.guideline is not None:
        metadata["guideline"] = question.guideline
    if question.chunk is not None:
        metadata["chunk_index"] = str(question.chunk)
    made = new_assessment(task, subject, number, verdict.value, metadata)
    return made._replace(
        source_type="LLM_JUDGE",
        source_id=judge.model,
        rationale=verdict.rationale,
        span_id=question.span_id or made.span_id,
    )


def failure(task: Task, subject: Subject, error: Exception) -> Assessment:
    """Returns an assessment that holds the judge's error, in MLflow's form but without a stack
    trace."""
    if isinstance(error, errors.MlflowError):
        message = error.message
    else:
        logger.exception("a judge failed", extra={"trace_id": subject.trace_id})
        message = "The judge failed unexpectedly."
    made = new_assessment(task, subject, 0, None, {})
    details: dict[str, str | None] = {"error_code": "SCORER_ERROR", "error_message": message}
    return made._replace(error={**details, "stack_trace": None}, source_id=task.judge.name)


def _with_precision(
    task: Task, judge: Judge, subject: Subject, made: Sequence[Assessment]
) -> list[Assessment]:
    """Adds for each retrieval span an assessment ``…/precision``, the share of its chunks that are
    relevant, before the assessments of the chunks."""
    assessments: list[Assessment] = []
    by_span: dict[str | None, list[Assessment]] = {}
    for each in made:
        by_span.setdefault(each.span_id, []).append(each)
    for number, (span_id, chunks) in enumerate(by_span.items()):
        share = sum(chunk.value == "yes" for chunk in chunks) / len(chunks)
        precision = new_assessment(task, subject, len(made) + number, share, {})
        assessments.append(
            precision._replace(
                name=f"{judge.name}/precision",
                span_id=span_id,
                source_type="LLM_JUDGE",
                source_id=judge.model,
            )
        )
        assessments += chunks
    return assessments


def new_assessment(
    task: Task, subject: Subject, number: int, value: Any, metadata: Mapping[str, str]
) -> Assessment:
    """Returns an assessment with the metadata that MLflow's client gives the assessments of a
    scorer.

    Args:
        number: the assessment's number among those that this task (a job's scorer) makes of the
            trace.
    """
    registered = {
        f"{_PREFIX}scorerName": task.judge.name,
        f"{_PREFIX}scorerVersion": str(task.version),
    }
    ran = {} if task.run_id is None else {reserved_tags.ASSESSMENT_RUN: task.run_id}
    now = now_ms()
    return Assessment(
        assessment_id=_id(task, subject.trace_id, number),
        trace_id=subject.trace_id,
        name=task.judge.name,
        kind="feedback",
        value=_with_doubles(value),
        error=None,
        source_type="CODE",
        source_id=None,
        create_time=now,
        last_update_time=now,
        run_id=task.run_id,
        span_id=trace_content.root_span_id(subject),
        rationale=None,
        metadata={
            **metadata,
            **task.extra,
            f"{_PREFIX}scorerDigest": task.judge.digest,
            **({} if task.version is None else registered),
            **ran,
        },
        overrides=None,
        valid=True,
    )


def _id(task: Task, trace_id: str, number: int) -> str:
    """Returns the assessment's id: a digest of task, judge and trace, and in the last four digits
    the assessment's number. So it is the same when the task is repeated."""
    origin = "\n".join((task.task_id, task.judge.name, task.judge.digest, trace_id))
    return f"a-{blake2b(origin.encode(), digest_size=14).hexdigest()}{number:04x}"


def _with_doubles(value: Any) -> Any:
    """Returns the value with floats for integers: protobuf's ``Value`` has only doubles."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return list(map(_with_doubles, value))
    if isinstance(value, dict):
        return {key: _with_doubles(each) for key, each in value.items()}
    return value
