"""A judge at work: from a trace or a conversation to the assessments of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.traces import Assessment
from mlcore.ids import now_ms
from mlcore.judges import builtin, content, prompts, verdicts
from mlcore.judges.builtin import Question
from mlcore.judges.chat import Chat
from mlcore.judges.content import Subject
from mlcore.judges.verdicts import Verdict
from mlcore.observability import logger
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import SESSION, Change, StoredTrace

_PREFIX: Final = "mlflow.assessment."
_SOURCE_RUN: Final = f"{_PREFIX}sourceRunId"


class Task(NamedTuple):
    """What a judge is at work for."""

    task_id: str
    """The same task makes the same assessments, however often it is begun."""
    judge: Judge
    version: int | None
    """Of the registered scorer that it is, if it is one."""
    run_id: str | None = None
    """Of the run of evaluation that it belongs to."""
    extra: Mapping[str, str] = {}
    """Metadata of all of its assessments."""


def of_trace(task: Task, subject: Subject, chat: Chat) -> list[Assessment]:
    """The assessments of a trace. What goes wrong is told by one that has an error."""
    try:
        if task.judge.builtin:
            questions = builtin.of_trace(task.judge, subject)
        else:
            questions = [prompts.of_trace(task.judge, subject)]
        made = [
            _feedback(task, subject, at, question, _asked(task, chat, question))
            for at, question in enumerate(questions)
        ]
    except Exception as error:  # whatever it is, the other traces are judged
        return [_failure(task, subject, error)]
    of_spans = any(question.span_id for question in questions)
    return _with_precision(task, subject, made) if of_spans else made


def of_session(task: Task, session: Sequence[Subject], chat: Chat) -> list[Assessment]:
    """The assessments of a conversation, which are of its first trace."""
    first = content.in_time(session)[0]
    told = task._replace(extra={**task.extra, SESSION: first.session or ""})
    try:
        ask = builtin.of_session if task.judge.builtin else prompts.of_session
        question = ask(task.judge, session)
        return [_feedback(told, first, 0, question, _asked(told, chat, question))]
    except Exception as error:  # whatever it is, other conversations are judged
        return [_failure(told, first, error)]


def known(task: Task, subject: Subject) -> list[Assessment]:
    """What the same task has written on a trace already."""
    own = _id(task, subject.trace_id, 0)[:-4]
    return [one for one in subject.trace.assessments if one.assessment_id.startswith(own)]


def write(stored: StoredTrace, made: Sequence[Assessment]) -> None:
    """Puts assessments on their trace; those that are there stay. A trace that has gone meanwhile
    gets none."""
    texts = {one.assessment_id: trace_assessments.text(one) for one in made}

    def add(current: StoredTrace) -> Change | None:
        there = current.document.texts("assessments")
        new = {key: text for key, text in texts.items() if key not in there}
        return Change(current.info, {"assessments": new}) if new else None

    traces.write(stored, add)


def _asked(task: Task, chat: Chat, question: Question) -> Verdict:
    try:
        answer = chat.ask(prompts.chat(task.judge, question))
    except errors.MlflowError as error:
        raise errors.InvalidParameterValue(
            f"Failed to invoke judge model: {error.message}"
        ) from error
    return verdicts.of_answer(task.judge, answer)


def _feedback(
    task: Task, subject: Subject, at: int, question: Question, verdict: Verdict
) -> Assessment:
    told = {
        "judgeInputTokens": verdict.input_tokens,
        "judgeOutputTokens": verdict.output_tokens,
    }
    metadata = {f"{_PREFIX}{name}": str(value) for name, value in told.items() if value is not None}
    if question.guideline is not None:
        metadata["guideline"] = question.guideline
    if question.chunk is not None:
        metadata["chunk_index"] = str(question.chunk)
    made = _assessment(task, subject, at, verdict.value, metadata)
    return made._replace(
        source_type="LLM_JUDGE",
        source_id=task.judge.model,
        rationale=verdict.rationale,
        span_id=question.span_id or made.span_id,
    )


def _failure(task: Task, subject: Subject, error: Exception) -> Assessment:
    """As MLflow tells it, but without our stack."""
    if isinstance(error, errors.MlflowError):
        message = error.message
    else:
        logger.exception("a judge failed", extra={"trace_id": subject.trace_id})
        message = "The judge failed unexpectedly."
    made = _assessment(task, subject, 0, None, {})
    told: dict[str, str | None] = {"error_code": "SCORER_ERROR", "error_message": message}
    return made._replace(error={**told, "stack_trace": None}, source_id=task.judge.name)


def _with_precision(task: Task, subject: Subject, made: Sequence[Assessment]) -> list[Assessment]:
    """With the share of relevant texts, for each retrieval before what is said of its texts."""
    found: list[Assessment] = []
    by_span: dict[str | None, list[Assessment]] = {}
    for one in made:
        by_span.setdefault(one.span_id, []).append(one)
    for number, (span_id, chunks) in enumerate(by_span.items()):
        share = sum(one.value == "yes" for one in chunks) / len(chunks)
        mean = _assessment(task, subject, len(made) + number, share, {})
        found.append(
            mean._replace(
                name=f"{task.judge.name}/precision",
                span_id=span_id,
                source_type="LLM_JUDGE",
                source_id=task.judge.model,
            )
        )
        found += chunks
    return found


def _assessment(
    task: Task, subject: Subject, at: int, value: Any, metadata: Mapping[str, str]
) -> Assessment:
    """With the metadata that MLflow's clients give what a scorer makes."""
    registered = {
        f"{_PREFIX}scorerName": task.judge.name,
        f"{_PREFIX}scorerVersion": str(task.version),
    }
    ran = {} if task.run_id is None else {_SOURCE_RUN: task.run_id}
    now = now_ms()
    return Assessment(
        assessment_id=_id(task, subject.trace_id, at),
        trace_id=subject.trace_id,
        name=task.judge.name,
        kind="feedback",
        value=_doubles(value),
        error=None,
        source_type="CODE",
        source_id=None,
        create_time=now,
        last_update_time=now,
        run_id=task.run_id,
        span_id=content.root_span_id(subject),
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


def _id(task: Task, trace_id: str, at: int) -> str:
    """The last four digits count the assessments that a task makes of a trace."""
    named = "\n".join((task.task_id, task.judge.name, task.judge.digest, trace_id))
    return f"a-{blake2b(named.encode(), digest_size=14).hexdigest()}{at:04x}"


def _doubles(value: Any) -> Any:
    """As protobuf's values hold it, in which every number is a double."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return list(map(_doubles, value))
    if isinstance(value, dict):
        return {key: _doubles(each) for key, each in value.items()}
    return value
