"""The journal of a job's model calls and of its code scorers' judgements: those whose
answers are stored are not made again when the job is interrupted.

A job whose calls depend on each other cannot tell from its results which calls it has made. So each
answer is stored before it is used. A later execution of the job repeats its steps: it gets the
stored answers for the requests that were made before, and asks the model from there on. A request
is found by the hash of its content and by how many equal requests the execution has made before, so
calls may be made in parallel. The steps must follow from the job's parameters and from the answers
alone, otherwise requests differ and are made again.

Calls that fail at the provider are stored, too, because the steps after them depend on the failure.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeVar

from judge_runner import judge_costs
from judge_runner.job_execution import JobExecution
from mlcore import errors
from mlcore.entities.evaluation.jobs import deadline
from mlcore.judges.judge_model import Complete
from mlcore.repos.evaluation import job_calls
from mlcore.repos.evaluation.job_calls import AnswerTooLarge, CallId

T = TypeVar("T")

_KEPT_AFTER_DEADLINE_MS: Final = 3_600_000
"""Stored calls expire this long after the job's deadline, which an execution may exceed a
little."""
_ATTEMPTS: Final = 3
_LONGEST_PAUSE_SECONDS: Final = 20.0
_FAILURE: Final = "failure"
_COMPLETION: Final = "completion"
_VALUE: Final = "value"
_JUDGED: Final = "judged"
_DOLLARS: Final = "dollars"


class CallJournal:
    """Makes the model calls of a background job and stores their answers. May be used from several
    threads."""

    def __init__(self, work: JobExecution, complete: Complete) -> None:
        """Reads the calls that earlier executions of the job have made (one Query per MB), and
        raises the job's stored cost to the cost of these calls if it is less.

        Args:
            complete: makes a call and adds its cost to the job.
        """
        self._work = work
        self._complete = complete
        self._stored = job_calls.of_job(work.job.job_id)
        self._repeats: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._restore_cost()

    def complete(
        self, workspace: str, endpoint: str, chat: Mapping[str, Any], username: str | None
    ) -> dict[str, Any]:
        """Calls the model to complete a chat (see :data:`mlcore.judges.judge_model.Complete`), or
        returns the completion that an earlier execution of the job stored.

        Raises:
            GatewayCallFailed: the call failed, now or in an earlier execution of the job, or the
                model's answer is too long to be stored.
            TemporarilyUnavailable, RequestLimitExceeded: the table or the secrets cannot be reached
                or are busy, so the call is not stored.
            OutOfTime, JobStopped: see :meth:`JobExecution.check`.
        """
        call = self._next_call(endpoint, chat)
        data = self._stored.get(call)
        if data is not None:
            return _completion(job_calls.unpacked(data))
        self._work.check()
        outcome = self._make(workspace, endpoint, chat, username)
        try:
            stored = job_calls.put(self._work.job.job_id, call, outcome, self._expiry())
        except AnswerTooLarge:
            raise errors.GatewayCallFailed(502, "The model's answer is too long.") from None
        return _completion(stored)

    def judge(self, request: Any, judge: Callable[[], tuple[Any, float]]) -> Any:
        """Returns the result of a code scorer's judgement, as a JSON value, or that of an earlier
        execution.

        Args:
            request: a JSON value from which the result follows: the code and what it judges.
            judge: returns the result and its cost in US dollars, and adds the cost to the job.

        Raises:
            InvalidParameterValue: the result is too large.
            OutOfTime, JobStopped: see :meth:`JobExecution.check`.
        """
        call = self._next_call(_JUDGED, request)
        data = self._stored.get(call)
        if data is not None:
            return job_calls.unpacked(data)[_JUDGED]
        self._work.check()
        result, dollars = judge()
        outcome = {_JUDGED: result, _DOLLARS: dollars}
        try:
            stored = job_calls.put(self._work.job.job_id, call, outcome, self._expiry())
        except AnswerTooLarge:
            raise errors.InvalidParameterValue("The scorer's answer is too long.") from None
        return stored[_JUDGED]

    def remember(self, name: str, read: Callable[[], T]) -> T:
        """Returns a JSON value that the job's first execution has read; later executions get the
        stored value. So their steps do not depend on changes since then.

        Args:
            name: identifies the value within the job.
            read: reads the value.

        Raises:
            InvalidParameterValue: the value does not fit into an item.
        """
        call = CallId(f"{_VALUE}:{name}", 0)
        data = self._stored.get(call)
        if data is None:
            value = {_VALUE: read()}
            try:
                stored = job_calls.put(self._work.job.job_id, call, value, self._expiry())
            except AnswerTooLarge:
                raise errors.InvalidParameterValue(f"The job's {name} are too large.") from None
        else:
            stored = job_calls.unpacked(data)
        remembered: T = stored[_VALUE]
        return remembered

    def _expiry(self) -> int:
        return deadline(self._work.job) + _KEPT_AFTER_DEADLINE_MS

    def _next_call(self, endpoint: str, chat: Any) -> CallId:
        text = json.dumps([endpoint, chat], sort_keys=True, ensure_ascii=False)
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
        with self._lock:
            number = self._repeats[digest]
            self._repeats[digest] += 1
        return CallId(digest, number)

    def _make(
        self, workspace: str, endpoint: str, chat: Mapping[str, Any], username: str | None
    ) -> dict[str, Any]:
        """Makes a call, and again after a short pause if it failed with 429 or 5xx, up to
        :data:`_ATTEMPTS` times. Returns the completion or the failure as the JSON object that is
        stored."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return {_COMPLETION: self._complete(workspace, endpoint, chat, username)}
            except errors.TemporarilyUnavailable:
                raise
            except errors.MlflowError as error:
                pause = _pause_seconds(error, attempt)
                if pause is None:
                    if isinstance(error, errors.RequestLimitExceeded):
                        raise  # this server's table or secrets were busy, not the provider
                    return {_FAILURE: {"status": error.status, "message": error.message}}
                time.sleep(pause)
                self._work.check()
        raise AssertionError  # unreachable: the last attempt returns

    def _restore_cost(self) -> None:
        known: list[float] = []
        for call, data in self._stored.items():
            if call.request_digest.startswith(f"{_VALUE}:"):
                continue  # no call, and perhaps large
            outcome = job_calls.unpacked(data)
            cost = judge_costs.cost_of(outcome[_COMPLETION]) if _COMPLETION in outcome else None
            known += [] if cost is None else [cost]
            known += [outcome[_DOLLARS]] if _DOLLARS in outcome else []
        if known:
            self._work.restore_cost(sum(known))


def _completion(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the completion of a stored call. Raises GatewayCallFailed if the call failed."""
    failure = outcome.get(_FAILURE)
    if failure is not None:
        raise errors.GatewayCallFailed(failure["status"], failure["message"])
    completion: dict[str, Any] = outcome[_COMPLETION]
    return completion


def _pause_seconds(error: errors.MlflowError, attempt: int) -> float | None:
    """Returns how long to wait before a failed call is made again; None if it is not."""
    if attempt == _ATTEMPTS or not (error.status == 429 or error.status >= 500):
        return None
    retry_after: str | None = getattr(error, "retry_after", None)
    if retry_after is None:
        return float(attempt)
    is_short = retry_after.isdecimal() and int(retry_after) <= _LONGEST_PAUSE_SECONDS
    return float(retry_after) if is_short else None
