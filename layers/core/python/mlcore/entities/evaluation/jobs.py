"""A job: work that a request has asked for and that goes on after its answer."""

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
"""All that MLflow knows, in its order; no job of ours needs recovery, for its message comes
again."""
FINAL: Final = frozenset((SUCCEEDED, FAILED, TIMEOUT, CANCELED))

INVOKE_SCORER: Final = "invoke_scorer"
INVOKE_EVALUATION: Final = "invoke_genai_evaluate"

MOST_SECONDS: Final = 3600
"""A job that has not ended so long after it was asked for has failed for its lack of time."""


TRACES_AT_ONCE: Final = 100
"""That one job judges."""


class Job(NamedTuple):
    """Times in milliseconds since the epoch."""

    job_id: str
    workspace: str
    name: str
    """What kind of work, in MLflow's words: ``invoke_scorer``."""
    params: dict[str, Any]
    status: str
    creation_time: int
    last_update_time: int
    creator: str | None = None
    """Who asked for it; None where nobody logs in."""
    timeout: float | None = None
    """Seconds after its creation."""
    result: Any = None
    """What came of it: JSON."""
    error_message: str | None = None
    retry_count: int = 0
    """How often it was taken up again."""
    completed: int | None = None
    """How many of ``total`` traces or sessions are done."""
    total: int | None = None
    lease_until: int | None = None
    """Until when whoever took it up works on it; who has not said so again by then is gone."""
    summary: dict[str, Any] | None = None
    """What an evaluation logs to its run: ``{"metrics": {name: value}, "time": ms}``. It is stored
    before it is logged, so that a repetition of the job logs the same points."""
    version: int = 0
    """Of the item that it was read from; 0: it is new."""


def batches(trace_ids: Sequence[str]) -> list[list[str]]:
    """The traces of each job."""
    starts = range(0, len(trace_ids), TRACES_AT_ONCE)
    return [list(trace_ids[at : at + TRACES_AT_ONCE]) for at in starts]


def deadline(job: Job) -> int:
    """When it is too late for the job to end, in milliseconds since the epoch."""
    seconds = MOST_SECONDS if job.timeout is None else min(job.timeout, MOST_SECONDS)
    return job.creation_time + int(seconds * 1000)


def as_of(job: Job, now: int) -> Job:
    """The job as it is at a time: one whose time is over has timed out, whoever died over it."""
    if job.status in FINAL or now <= deadline(job):
        return job
    return job._replace(status=TIMEOUT, last_update_time=deadline(job))
