"""Holding a job while it is done: taking it up, telling how far it is, ending it.

A message may come twice, and whoever works may die: only one at a time holds a job, for as long as
it says so again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore import ids
from mlcore.entities.evaluation.jobs import (
    FAILED,
    FINAL,
    PENDING,
    RUNNING,
    SUCCEEDED,
    TIMEOUT,
    Job,
    deadline,
)
from mlcore.repos.evaluation import jobs

LEASE_MS: Final = 180_000
BEAT_MS: Final = 10_000
"""So often progress is written."""
LAST_MS: Final = 45_000
"""With less time than this left to the function, nothing more is begun."""


class InWork(Exception):
    """Somebody else holds the job, for so many seconds at most."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.0f} s")
        self.seconds = seconds


class Stopped(Exception):
    """The job is to be done no more: it was cancelled, or its time is over."""


class OutOfTime(Exception):
    """The function's time is over; the job goes on in another call."""


class Work:
    """A job in hand. Its methods may be called from many threads."""

    def __init__(self, job: Job, remaining: Callable[[], float]) -> None:
        """
        Args:
            remaining: milliseconds that are left to the function.
        """
        self._job = job
        self._remaining = remaining
        self._lock = threading.Lock()
        self._told = ids.now_ms()
        self.results: dict[str, Any] = dict(job.result or {})
        """By trace, what the job answers of it."""

    @property
    def job(self) -> Job:
        return self._job

    def check(self) -> None:
        """Before anything more is begun. Raises Stopped, OutOfTime."""
        if self._remaining() < LAST_MS:
            raise OutOfTime
        if ids.now_ms() > deadline(self._job):
            raise Stopped
        if ids.now_ms() - self._told > BEAT_MS:
            self._tell()

    def done(self, trace_id: str, result: dict[str, Any]) -> None:
        """A trace, or a conversation by its first one, is judged."""
        with self._lock:
            self.results[trace_id] = result

    def summarize(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Stores the metrics of an evaluation and the time at which they are logged, and returns
        both (see :class:`Job`). If they were stored before, returns what was stored. Raises
        Stopped."""
        if self._job.summary is None:
            summary = {"metrics": dict(metrics), "time": ids.now_ms()}
            self._write(lease_until=ids.now_ms() + LEASE_MS, summary=summary)
            self._job = self._job._replace(summary=summary)
        return dict(self._job.summary or {})

    def pause(self) -> None:
        """Leaves the job to another call. Raises Stopped."""
        self._write(status=PENDING, lease_until=None, result=dict(self.results))

    def succeed(self, result: Any) -> None:
        """Raises Stopped."""
        self._write(status=SUCCEEDED, lease_until=None, result=result, completed=self._job.total)

    def fail(self, message: str) -> None:
        """Raises Stopped."""
        self._write(status=FAILED, lease_until=None, result=None, error_message=message)

    def _tell(self) -> None:
        with self._lock:
            if ids.now_ms() - self._told <= BEAT_MS:
                return  # another thread has told it
            self._told = ids.now_ms()
            kept, done = dict(self.results), len(self.results)
        self._write(lease_until=ids.now_ms() + LEASE_MS, result=kept, completed=done)

    def _write(self, **changes: Any) -> None:
        def change(job: Job) -> Job:
            # Who has taken the job up meanwhile has counted that.
            if job.status != RUNNING or job.retry_count != self._job.retry_count:
                raise Stopped
            return job._replace(**changes)

        written = jobs.change(self._job.workspace, self._job.job_id, change)
        if written is None:
            raise Stopped


def take(job: Job, remaining: Callable[[], float]) -> Work | None:
    """Takes a job up, or None: it needs nobody any more. Raises InWork."""

    def begin(current: Job) -> Job | None:
        now = ids.now_ms()
        if current.status in FINAL:
            return None
        if now > deadline(current):
            return current._replace(status=TIMEOUT, lease_until=None, result=None)
        if current.status == RUNNING and (current.lease_until or 0) > now:
            raise InWork(((current.lease_until or 0) - now) / 1000)
        again = current.status == RUNNING
        return current._replace(
            status=RUNNING,
            lease_until=now + LEASE_MS,
            retry_count=current.retry_count + int(again),
        )

    taken = jobs.change(job.workspace, job.job_id, begin)
    return None if taken is None or taken.status in FINAL else Work(taken, remaining)
