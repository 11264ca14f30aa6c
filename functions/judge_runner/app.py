"""Runs the jobs in the queue: judges assess traces, issues are detected, prompts are optimized. On
a schedule it submits the jobs of online scoring and of issue detection.

A job whose message is delivered twice runs once. An interrupted job continues at its next delivery.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from judge_runner import (
    evaluation_runs,
    judge_costs,
    online_scoring,
    prompt_optimization,
    trace_scoring,
)
from judge_runner.issue_detection import detection, scheduled_runs
from judge_runner.job_execution import (
    JobExecution,
    JobLeased,
    JobStopped,
    JobThrottled,
    OutOfTime,
    ServerStopping,
    start,
)
from mlcore import ids, job_queue
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.jobs import (
    FINAL,
    INVOKE_EVALUATION,
    INVOKE_SCORER,
    ONLINE_SCORING,
    OPTIMIZE_PROMPT,
    RUNNING,
    Job,
    deadline,
)
from mlcore.entities.gateway import SavedKeyModel
from mlcore.errors import (
    InternalError,
    MlflowError,
    RequestLimitExceeded,
    TemporarilyUnavailable,
)
from mlcore.job_queue import JobMessage
from mlcore.judges.judge_model import Complete
from mlcore.observability import logger
from mlcore.repos.evaluation import jobs

_MAX_ATTEMPTS: Final = 3
"""At this delivery of its message, or a later one, an unexpected error makes the job fail
permanently."""
_MAX_BUSY_ATTEMPTS: Final = 15
"""The same for an error of the table or of another service that will pass: about five minutes. SQS
gives a message up after its 20th delivery."""
_MAX_DEATHS: Final = 8
"""After so many calls that died, a job is not tried again: its traces may take too much memory."""
_DEAD_SECONDS: Final = 30.0
"""A message whose call died comes again so long after the call would have been out of time."""
_PAUSE_SECONDS: Final = 20.0
_STORING_SECONDS: Final = 0.1
"""Time that a request usually needs at most to store a job whose message it has sent."""
_EARLY_SECONDS: Final = 3.0
"""Pause before a message is delivered again whose job is not stored yet."""

Run = Callable[[JobExecution, Complete], dict[str, Any]]
_RUN_BY_JOB_NAME: Final[Mapping[str, Run]] = {
    INVOKE_SCORER: trace_scoring.run,
    INVOKE_EVALUATION: evaluation_runs.run,
    OPTIMIZE_PROMPT: prompt_optimization.run,
    ONLINE_SCORING: online_scoring.run,
    issue_detection.JOB_NAME: detection.run,
}
_WITH_RUN: Final = frozenset((INVOKE_EVALUATION, OPTIMIZE_PROMPT))
"""Jobs that have a run, which ends with them."""
_WITH_JOURNAL: Final = frozenset((OPTIMIZE_PROMPT, issue_detection.JOB_NAME))
"""Jobs that call models through a :class:`judge_runner.call_journal.CallJournal`, which repeats
calls by itself."""


class AllMessagesFailed(Exception):
    """Raised if all messages of an SQS event met an unexpected error; the log has the reasons."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Runs the jobs in the messages of an SQS event; returns the ids of the messages that SQS must
    deliver again. A scheduled event submits the jobs of online scoring and of issue detection.

    Raises:
        AllMessagesFailed: all messages met an unexpected error. SQS delivers them again, and the
            function's error metric counts the failure.
    """
    if "Records" not in event:
        _sweep(context.get_remaining_time_in_millis)
        return {}
    broken: list[str] = []
    failed = [
        record["messageId"] for record in event["Records"] if not _handle(record, context, broken)
    ]
    if broken and len(broken) == len(event["Records"]):
        raise AllMessagesFailed(f"{len(broken)} messages")
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _sweep(remaining: Callable[[], float]) -> None:
    """Starts the jobs that are due by schedule: online scoring, then detection of issues. A failure
    of one does not stop the other, and online scoring takes at most half of the time."""
    half = remaining() / 2
    try:
        online_scoring.sweep(lambda: remaining() - half)
    finally:
        scheduled_runs.sweep(remaining)


def _handle(record: Mapping[str, Any], context: Any, broken: list[str]) -> bool:
    message = job_queue.parse(record["body"])
    details = {"job_id": message.job_id, "workspace": message.workspace}
    remaining: Callable[[], float] = context.get_remaining_time_in_millis
    try:
        sent = int(record["attributes"].get("SentTimestamp", 0))
        job = _find(message, sent)
        if job is None:
            if jobs.may_be_stored_soon(message.job_id, sent, ids.now_ms()):
                _postpone(record["receiptHandle"], _EARLY_SECONDS)
                return False
        else:
            # The queue's visibility timeout is as long as most jobs may take.
            _postpone(record["receiptHandle"], remaining() / 1000 + _DEAD_SECONDS)
            _run_job(job, int(record["attributes"]["ApproximateReceiveCount"]), remaining)
    except ServerStopping:
        return False
    except JobLeased as leased:
        _postpone(record["receiptHandle"], leased.seconds)
        return False
    except Exception:
        logger.exception("a job failed", extra=details)
        broken.append(record["messageId"])
        _postpone(record["receiptHandle"], _PAUSE_SECONDS)
        return False
    return True


def _find(message: JobMessage, sent: int) -> Job | None:
    """Returns the job of a message; None if it does not exist. A message is sent just before its
    job is stored, so a missing job of a new message is read once more after a moment.

    Args:
        sent: when the message was sent, in ms since the epoch.
    """
    job = jobs.find(message.workspace, message.job_id)
    if job is None and jobs.may_be_stored_soon(message.job_id, sent, ids.now_ms()):
        time.sleep(_STORING_SECONDS)
        job = jobs.find(message.workspace, message.job_id)
    return job


def _run_job(job: Job, attempt: int, remaining: Callable[[], float]) -> None:
    """Runs a job until it ends, pauses or is stopped. Raises JobLeased if another call holds it or
    has taken it over, ServerStopping, and unexpected errors as long as the job has attempts
    left."""
    work = start(job, remaining)
    if work is None:
        _end_unfinished_run(job)
        return
    details = {"job_id": job.job_id, "job": job.name}
    try:
        _attempt(work, attempt)
    except JobStopped:
        logger.info("a job was stopped", extra=details)
        _end_unfinished_run(job)
    else:
        logger.info("a job has ended or paused", extra=details)


def _end_unfinished_run(job: Job) -> None:
    """Ends the run of a job that will not continue; does nothing for jobs without a run, and for
    those that another call has paused. Raises JobLeased if another call runs the job: that call
    may die, and then this message must continue the job."""
    current = jobs.find(job.workspace, job.job_id)
    if current is None:
        return
    now = ids.now_ms()
    if current.status not in FINAL and now <= deadline(current):
        if current.status == RUNNING:
            raise JobLeased(max(0, (current.lease_until or 0) - now) / 1000)
        return
    if job.name in _WITH_RUN:
        evaluation_runs.end_stopped(current)
    elif job.name == issue_detection.JOB_NAME:
        detection.end_stopped(current)


def _attempt(work: JobExecution, attempt: int) -> None:
    job = work.job
    try:
        if job.retry_count >= _MAX_DEATHS:
            raise InternalError("The job was interrupted too often.")
        work.rights.check()
        complete = judge_costs.metered(_completion(job), work.add_cost)
        result = _RUN_BY_JOB_NAME[job.name](work, complete)
    except ServerStopping:  # the message stays in the queue; no new one can be sent
        work.pause()
        raise
    except JobThrottled:
        seconds = work.pause_throttled()
        job_queue.send(JobMessage(job.workspace, job.job_id), seconds)
    except OutOfTime:
        work.pause()
        job_queue.send(JobMessage(job.workspace, job.job_id))
    except JobStopped:
        raise
    except Exception as error:
        # Limits and budgets of the gateway are other errors (GatewayCallFailed, JobThrottled).
        is_passing = isinstance(error, TemporarilyUnavailable | RequestLimitExceeded)
        is_final = isinstance(error, MlflowError) and not is_passing
        if not is_final and attempt < (_MAX_BUSY_ATTEMPTS if is_passing else _MAX_ATTEMPTS):
            work.pause()
            raise
        if not is_final:
            logger.exception("a job failed for good", extra={"job_id": job.job_id})
        message = error.message if isinstance(error, MlflowError) else ""
        message = message or "The job failed unexpectedly."
        work.fail(message)
        if job.name in _WITH_RUN:
            evaluation_runs.end_failed(job)
        elif job.name == issue_detection.JOB_NAME:
            detection.end_failed(job, message)
    else:
        work.succeed(result)


def _completion(job: Job) -> Complete:
    """Returns the function that calls the job's models: endpoints of the gateway, or the one model
    of a job that has a saved key in place of an endpoint."""
    has_journal = job.name in _WITH_JOURNAL
    if "saved_key" not in job.params:
        return _gateway_completion(repeats_itself=has_journal)
    from mlcore.gateway import saved_key_calls  # noqa: PLC0415 -- as below

    model = SavedKeyModel(*job.params["saved_key"])
    return partial(saved_key_calls.complete_chat, model, judges=True, repeats_itself=has_journal)


def _gateway_completion(*, repeats_itself: bool) -> Complete:
    from mlcore.gateway import guarded_calls  # noqa: PLC0415 -- the calls of providers are many modules

    return partial(guarded_calls.complete_chat, judges=True, repeats_itself=repeats_itself)


def _postpone(receipt_handle: str, seconds: float) -> None:
    try:
        job_queue.postpone(receipt_handle, max(1.0, seconds))
    except MlflowError:
        # SQS delivers it again when the queue's visibility timeout has passed.
        logger.warning("a message's visibility timeout could not be changed")
