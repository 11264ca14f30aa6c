"""Jobs: work that a request starts and that continues after its response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

PENDING: Final = "PENDING"
RUNNING: Final = "RUNNING"
SUCCEEDED: Final = "SUCCEEDED"
FAILED: Final = "FAILED"
TIMEOUT: Final = "TIMEOUT"
CANCELED: Final = "CANCELED"
STATUSES: Final = (PENDING, RUNNING, "NEEDS_RECOVERY", SUCCEEDED, FAILED, TIMEOUT, CANCELED)
"""All of MLflow's statuses, in its order. Jobs of this server are never NEEDS_RECOVERY, since their
queue message is delivered again."""
FINAL: Final = frozenset((SUCCEEDED, FAILED, TIMEOUT, CANCELED))

INVOKE_SCORER: Final = "invoke_scorer"
INVOKE_EVALUATION: Final = "invoke_genai_evaluate"
OPTIMIZE_PROMPT: Final = "optimize_prompts"
ONLINE_SCORING: Final = "run_online_trace_scorer"

DEFAULT_SECONDS: Final = 3600
"""A job without a timeout of its own that has not ended this long after its creation has timed
out."""
MAX_SECONDS: Final = 24 * 3600
"""Longest timeout of a job."""

WAITS_FOR_CONCURRENCY: Final = "waits until Lambda runs more functions at once"
"""The :attr:`Job.stage` of a throttled job, which users see."""
_WAITED: Final = (
    "The job timed out while it waited for Lambda, which ran no more functions of code scorers at "
    "once. Raise the account's limit of concurrent executions, or judge fewer traces at a time."
)

TRACES_PER_JOB: Final = 100
"""Traces that one job judges."""


class Creator(NamedTuple):
    """The user who starts a job."""

    username: str | None
    """None without a login."""
    user_id: int | None = None
    """The number of the user, which a later user of the same name does not have. None without a
    login, and where it was not stored (release 0.1.0)."""
    key_id: str | None = None
    """The API key of the request; None for another login, and for jobs without a request."""


NOBODY: Final = Creator(None)


class Job(NamedTuple):
    """A background job with its status, progress and result. Times are in ms since the epoch."""

    job_id: str
    workspace: str
    name: str
    """MLflow's name of the kind of work, e.g. ``invoke_scorer``."""
    params: dict[str, Any]
    status: str
    creation_time: int
    last_update_time: int
    creator: str | None = None
    """The user who started the job; None without login. See :class:`Creator`."""
    timeout: float | None = None
    """Seconds after its creation at which the job times out."""
    result: Any = None
    """The result as a JSON value."""
    error_message: str | None = None
    retry_count: int = 0
    """Number of retries."""
    completed: int | None = None
    """Traces or sessions done, out of ``total``."""
    total: int | None = None
    lease_until: int | None = None
    """End of the worker's lease. A worker that has not renewed it by then counts as dead."""
    summary: dict[str, Any] | None = None
    """The points that an evaluation logs to its run: ``{"metrics": {name: value}, "time": ms}``.
    They are stored before they are logged, so that a retried job logs the same points. That of an
    optimization also has the prompt version that it registered: ``"prompt_version": number``."""
    dollars: float | None = None
    """The US dollars that models and code of judges have cost so far; None if no price is known."""
    stage: str | None = None
    """What the job is doing, for jobs with several stages."""
    creator_id: int | None = None
    key_id: str | None = None
    throttled: int = 0
    """How often in a row the job has paused because Lambda ran no more functions of code
    scorers."""
    version: int = 0
    """Version of the stored item; 0 before it is stored."""


def batches(trace_ids: Sequence[str]) -> list[list[str]]:
    """Splits the traces that are to be judged into lists of at most TRACES_PER_JOB ids, one list
    for each job."""
    starts = range(0, len(trace_ids), TRACES_PER_JOB)
    return [list(trace_ids[start : start + TRACES_PER_JOB]) for start in starts]


def expected_dollars(job: Job) -> float | None:
    """Returns the US dollars that judges and code will have cost when the job ends, if each of its
    traces costs as much as those judged so far; None if none is judged yet, or no price is known.
    """
    if job.dollars is None or not job.completed or job.total is None:
        return None
    return job.dollars * max(job.total, job.completed) / job.completed


def deadline(job: Job) -> int:
    """Returns the time at which a background job times out, in ms since the epoch."""
    seconds = DEFAULT_SECONDS if job.timeout is None else min(job.timeout, MAX_SECONDS)
    return job.creation_time + int(seconds * 1000)


def as_of(job: Job, now: int) -> Job:
    """Returns the job (such as the scoring of traces) with its status at ``now``: an unfinished job
    whose deadline has passed has timed out, even if its worker died before it could store that."""
    if job.status in FINAL or now <= deadline(job):
        return job
    return timed_out(job)._replace(last_update_time=deadline(job))


def timed_out(job: Job) -> Job:
    """Returns the job with the status TIMEOUT. If the job has paused because Lambda ran no more
    functions, and has stored no progress since, its error message says so."""
    message = _WAITED if job.throttled else job.error_message
    return job._replace(status=TIMEOUT, error_message=message)
