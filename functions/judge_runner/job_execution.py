"""Executes a job under a lease: starts it, writes its progress, ends it.

A message may be delivered twice, and a function may die. So only the holder of a job's lease runs
it, and renews the lease with each heartbeat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from judge_runner.creator_rights import CreatorRights
from mlcore import ids
from mlcore.db.table import Operation
from mlcore.entities.evaluation.jobs import (
    FAILED,
    FINAL,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Job,
    deadline,
    timed_out,
)
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import jobs

LEASE_MS: Final = 180_000
HEARTBEAT_MS: Final = 10_000
"""Least interval between two writes of the progress, which renew the lease."""
LARGE_HEARTBEAT_MS: Final = 30_000
LARGE_TRACES: Final = 2_000
"""The item of a job with more traces than this is large, so it is written less often."""
_THROTTLED_SECONDS: Final = 30
_MAX_THROTTLED_SECONDS: Final = 300
"""The first and the longest pause of a job after Lambda has refused a code scorer for lack of
capacity."""
MIN_REMAINING_MS: Final = 45_000
"""If the function has less time than this left, no other trace is started."""


class JobLeased(Exception):
    """Raised if another function call holds the job's lease, which ends within ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.0f} s")
        self.seconds = seconds


class JobStopped(Exception):
    """Raised if the job must not continue: it was cancelled, its deadline has passed, or another
    function call has taken it over."""


class OutOfTime(Exception):
    """Raised if the invocation of the Lambda function, which runs a job, is nearly out of time.
    Another invocation continues the job."""


class ServerStopping(OutOfTime):
    """Raised if a laptop's server stops. The job's message comes again after the next start."""


class JobThrottled(OutOfTime):
    """Raised if Lambda does not begin a call of the function that runs code scorers, because too
    many functions run or this one is not ready. Another call of the judge runner continues the
    job after a pause."""


class JobExecution:
    """The execution of a job (such as an evaluation) by this call of the Lambda function. Its
    methods may be called from several threads."""

    def __init__(self, job: Job, remaining: Callable[[], float]) -> None:
        """
        Args:
            remaining: returns the remaining milliseconds of the function call.
        """
        self._job = job
        self._remaining = remaining
        self.began_with_seconds = remaining() / 1000
        """How long this call of the function could take at the beginning of the execution."""
        self.rights = CreatorRights(job)
        self._lock = threading.Lock()
        self._last_heartbeat = ids.now_ms()
        is_large = (job.total or 0) > LARGE_TRACES
        self._heartbeat_ms = LARGE_HEARTBEAT_MS if is_large else HEARTBEAT_MS
        self._lease_ms = LEASE_MS
        self._done = 0
        self._has_judged = False
        self._is_stopped = False
        self._dollars = job.dollars
        self.results: dict[str, Any] = dict(job.result or {})
        """The job's result for each trace that has one, by trace id."""

    @property
    def job(self) -> Job:
        return self._job

    @property
    def dollars(self) -> float | None:
        """The cost so far of the job's calls of models and of code scorers, in US dollars; None as
        long as no price is known."""
        return self._dollars

    def enter_stage(self, stage: str) -> None:
        """Stores a phrase that tells users what the job is doing now. Raises JobStopped if this
        execution must not continue the job."""
        if self._job.stage != stage:
            self._write(lease_until=ids.now_ms() + self._lease_ms, stage=stage, **self._progress())
            self._job = self._job._replace(stage=stage)

    def check(self) -> None:
        """Raises OutOfTime if this call of the function has too little time left, JobStopped if the
        job was stopped or is past its deadline, PermissionDenied if the job's creator lost a right.
        Writes the job's heartbeat if it is due. Must be called before each trace."""
        if self._remaining() < MIN_REMAINING_MS:
            raise OutOfTime
        if self._is_stopped or ids.now_ms() > deadline(self._job):
            raise JobStopped
        if ids.now_ms() - self._last_heartbeat > self._heartbeat_ms:
            self._heartbeat()
        self.rights.check()

    def remaining_seconds(self) -> float:
        """Returns how many seconds this invocation of the function may still take."""
        return self._remaining() / 1000

    def hold(self, seconds: float) -> None:
        """Extends the job's lease to cover work of this many seconds, in which no heartbeat is
        sent. Must be called after :meth:`check`. Raises JobStopped if the job must not continue."""
        needed_ms = int(seconds * 1000) + 2 * LARGE_HEARTBEAT_MS
        with self._lock:
            is_longer = needed_ms > self._lease_ms
            self._lease_ms = max(needed_ms, self._lease_ms)
        if is_longer:
            self._write(lease_until=ids.now_ms() + self._lease_ms, **self._progress())

    def record_result(self, trace_id: str, result: dict[str, Any]) -> None:
        """Records a trace's assessments and failures; a session's under its first trace's id."""
        with self._lock:
            self.results[trace_id] = result

    def record_done(self, traces: int = 1) -> None:
        """Adds to the job's number of finished traces, for jobs that store no result for each
        trace."""
        with self._lock:
            self._done += traces

    def record_judgement(self) -> None:
        """Records that a code scorer made a judgement in this execution of the job, so that the
        next pause of the throttled job (:meth:`pause_throttled`) is short again."""
        self._has_judged = True

    def add_cost(self, dollars: float) -> None:
        """Adds the cost of a call of a judge's model, or of a code scorer's judgement, to the job's
        cost."""
        with self._lock:
            self._dollars = (self._dollars or 0.0) + dollars

    def restore_cost(self, dollars: float) -> None:
        """Raises the job's cost to ``dollars``, the cost of the calls that its journal has stored,
        if the job's cost is less: an execution that died has not stored the cost of its last calls
        in the job. The job may have cost even more, because the answers of some calls were lost."""
        with self._lock:
            self._dollars = max(dollars, self._dollars or 0.0)

    def summarize(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Stores an evaluation's summary in the job: its metrics, and the time at which they are
        logged. Returns the stored summary, which is an earlier one if the job has one. Raises
        JobStopped."""
        if self._job.summary is None:
            summary = {"metrics": dict(metrics), "time": ids.now_ms()}
            self._write(lease_until=ids.now_ms() + self._lease_ms, summary=summary)
            self._job = self._job._replace(summary=summary)
        return dict(self._job.summary or {})

    def summarize_beside(
        self, commit: Callable[[Callable[[dict[str, Any]], Operation]], None]
    ) -> dict[str, Any]:
        """Stores the job's summary in one transaction with other writes, and returns it. If the job
        already has a summary, returns that one and writes nothing. Raises JobStopped.

        Args:
            commit: executes the transaction. It gets a function that returns the write of a
                summary, which must be part of the transaction. It raises WriteConflict if the
                condition of that write does not hold.
        """

        def attempt() -> dict[str, Any]:
            current = jobs.find(self._job.workspace, self._job.job_id)
            if current is None:
                raise JobStopped
            self._check_own(current)
            if current.summary is not None:
                return current.summary
            stored: list[dict[str, Any]] = []

            def storing(summary: dict[str, Any]) -> Operation:
                stored.append(summary)
                leased = current._replace(lease_until=ids.now_ms() + self._lease_ms)
                return jobs.replacement(leased._replace(summary=summary, dollars=self._dollars))

            commit(storing)
            return stored[-1]

        summary = retry_on_conflict("job", attempt)
        self._job = self._job._replace(summary=summary)
        return summary

    def pause(self) -> None:
        """Stores the job's results so far and releases its lease, so that another function call can
        continue. Raises JobStopped if this execution no longer runs the job."""
        self._write(status=PENDING, lease_until=None, **self._progress())

    def pause_throttled(self) -> int:
        """Pauses the job like :meth:`pause`, because Lambda has no capacity for a code scorer.
        Returns the seconds after which another call should continue: more with each such pause in a
        row without a judgement. Raises JobStopped."""
        progress = self._progress()
        throttled: int = progress.get("throttled", self._job.throttled) + 1
        self._write(status=PENDING, lease_until=None, **{**progress, "throttled": throttled})
        return min(_THROTTLED_SECONDS << min(throttled - 1, 10), _MAX_THROTTLED_SECONDS)

    def succeed(self, result: Any) -> None:
        """Ends the job with its result. Raises JobStopped."""
        self._write(status=SUCCEEDED, lease_until=None, result=result, completed=self._job.total)

    def fail(self, message: str) -> None:
        """Ends the job as failed. Raises JobStopped if this execution no longer runs the job."""
        self._write(status=FAILED, lease_until=None, result=None, error_message=message)

    def _heartbeat(self) -> None:
        """Writes the progress and renews the lease."""
        with self._lock:
            if ids.now_ms() - self._last_heartbeat <= self._heartbeat_ms:
                return  # another thread has just done it
            self._last_heartbeat = ids.now_ms()
        self._write(lease_until=ids.now_ms() + self._lease_ms, **self._progress())

    def _progress(self) -> dict[str, Any]:
        """Returns the job's fields with the results so far and the number of traces that are done.
        A call that continues a job counts the done traces again from the beginning; the number in
        the job does not decrease meanwhile."""
        with self._lock:
            count = max(len(self.results) + self._done, self._job.completed or 0)
            progress = {"result": dict(self.results) or None, "completed": count}
        if self._has_judged or count > (self._job.completed or 0):
            progress["throttled"] = 0
        return progress

    def _check_own(self, current: Job) -> None:
        """Raises JobStopped unless ``current``, the job as it is stored now, is still running in
        this execution."""
        # Another call that has taken the job over has increased the counter.
        if current.status != RUNNING or current.retry_count != self._job.retry_count:
            self._is_stopped = True  # other threads begin no further trace
            raise JobStopped

    def _write(self, **changes: Any) -> None:
        def change(job: Job) -> Job:
            self._check_own(job)
            return job._replace(dollars=self._dollars, **changes)

        written = jobs.change(self._job.workspace, self._job.job_id, change)
        if written is None:
            raise JobStopped


def start(job: Job, remaining: Callable[[], float]) -> JobExecution | None:
    """Takes the lease of a background job and returns the job's execution; None if the job has
    ended or does not exist, or its deadline has passed, which makes it timed out. Raises JobLeased
    if another call of this function holds the lease."""

    def begin(current: Job) -> Job | None:
        now = ids.now_ms()
        if current.status in FINAL:
            return None
        if now > deadline(current):
            return timed_out(current)._replace(lease_until=None, result=None)
        if current.status == RUNNING and (current.lease_until or 0) > now:
            raise JobLeased(((current.lease_until or 0) - now) / 1000)
        is_retry = current.status == RUNNING
        return current._replace(
            status=RUNNING,
            lease_until=now + LEASE_MS,
            retry_count=current.retry_count + int(is_retry),
        )

    changed = jobs.change(job.workspace, job.job_id, begin)
    return None if changed is None or changed.status in FINAL else JobExecution(changed, remaining)
