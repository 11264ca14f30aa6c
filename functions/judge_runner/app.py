"""Does the jobs that wait in the queue: lets judges judge traces.

A job that comes twice is done once, one that is cut short goes on where it comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from judge_runner import evaluation_runs, online, scoring
from judge_runner.work import InWork, OutOfTime, Stopped, Work, take
from mlcore import job_queue
from mlcore.entities.evaluation.jobs import INVOKE_EVALUATION, INVOKE_SCORER, Job
from mlcore.errors import MlflowError, TemporarilyUnavailable
from mlcore.job_queue import JobMessage
from mlcore.judges.chat import Complete
from mlcore.observability import logger
from mlcore.repos.evaluation import jobs

_ATTEMPTS: Final = 3
"""After so many a job that fails in ways of ours has failed."""
_PAUSE_SECONDS: Final = 20.0

Run = Callable[[Work, Complete], dict[str, Any]]
_RUNS: Final[Mapping[str, Run]] = {
    INVOKE_SCORER: scoring.run,
    INVOKE_EVALUATION: evaluation_runs.run,
    online.JOB_NAME: online.run,
}


class NothingDone(Exception):
    """All messages met an error of ours; the log says which."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """An SQS event in; the ids of the messages to come again out. A scheduled event: scorers that
    judge by themselves look for new traces.

    Raises:
        NothingDone: all shall come again, which is counted among the function's errors.
    """
    if "Records" not in event:
        online.sweep()
        return {}
    broken: list[str] = []
    failed = [
        record["messageId"] for record in event["Records"] if not _handled(record, context, broken)
    ]
    if broken and len(broken) == len(event["Records"]):
        raise NothingDone(f"{len(broken)} messages")
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _handled(record: Mapping[str, Any], context: Any, broken: list[str]) -> bool:
    message = job_queue.parse(record["body"])
    about = {"job_id": message.job_id, "workspace": message.workspace}
    remaining: Callable[[], float] = context.get_remaining_time_in_millis
    try:
        job = jobs.find(message.workspace, message.job_id)
        if job is not None:
            _do(job, int(record["attributes"]["ApproximateReceiveCount"]), remaining)
    except InWork as held:
        _put_off(record["receiptHandle"], held.seconds)
        return False
    except Exception:
        logger.exception("a job failed", extra=about)
        broken.append(record["messageId"])
        _put_off(record["receiptHandle"], _PAUSE_SECONDS)
        return False
    return True


def _do(job: Job, attempt: int, remaining: Callable[[], float]) -> None:
    """Raises InWork, and what is no fault of the job's, until that has come often enough."""
    work = take(job, remaining)
    if work is None:
        _over(job)
        return
    about = {"job_id": job.job_id, "job": job.name}
    try:
        _attempt(work, attempt)
    except Stopped:
        logger.info("a job was stopped", extra=about)
        _over(job)
    else:
        logger.info("a job has ended or paused", extra=about)


def _over(job: Job) -> None:
    """Nobody does the job any more, and its run goes on no more."""
    current = jobs.find(job.workspace, job.job_id)
    if job.name == INVOKE_EVALUATION and current is not None:
        evaluation_runs.stopped(current)


def _attempt(work: Work, attempt: int) -> None:
    job = work.job
    try:
        result = _RUNS[job.name](work, _complete())
    except OutOfTime:
        work.pause()
        job_queue.send(JobMessage(job.workspace, job.job_id))
    except Stopped:
        raise
    except Exception as error:
        told = isinstance(error, MlflowError) and not isinstance(error, TemporarilyUnavailable)
        if not told and attempt < _ATTEMPTS:
            work.pause()
            raise
        if not told:
            logger.exception("a job failed for good", extra={"job_id": job.job_id})
        message = error.message if isinstance(error, MlflowError) else None
        work.fail(message or "The job failed unexpectedly.")
        if job.name == INVOKE_EVALUATION:
            evaluation_runs.failed(job)
    else:
        work.succeed(result)


def _complete() -> Complete:
    from mlcore.gateway import chats  # noqa: PLC0415 -- the calls of providers are many modules

    return partial(chats.complete, judges=True)


def _put_off(receipt_handle: str, seconds: float) -> None:
    try:
        job_queue.postpone(receipt_handle, max(1.0, seconds))
    except MlflowError:
        # Then it comes again when the queue's own timeout has passed.
        logger.warning("a message could not be put off")
