"""Evaluation jobs: one item each, in a partition per workspace, ordered by creation; they expire a
month after their last write."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from ulid import ULID

from mlcore import errors, job_queue
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, table
from mlcore.entities.evaluation.jobs import FAILED, NOBODY, PENDING, Creator, Job
from mlcore.ids import now_ms
from mlcore.job_queue import JobMessage
from mlcore.models.evaluation import Job as JobItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict

KEPT_SECONDS: Final = 30 * 24 * 3600
_STORED_WITHIN_MS: Final = 40_000
"""How long after the creation of its id, or after its message was sent, a job may still be stored:
a request ends within 30 seconds."""
_ITEM_BYTES: Final = 390_000
"""Maximum size of a job's item; DynamoDB allows 400 KB."""


def new_id() -> str:
    """Returns a new job id: a UUID, as in MLflow, made from a ULID, so that ids sort by time."""
    return str(ULID().to_uuid())


def may_be_stored_soon(job_id: str, sent: int, now: int) -> bool:
    """Whether a job that does not exist may still be stored, because a job is queued before it is
    stored (:func:`enqueue`). True within 40 seconds after its id was made or its message sent.

    Args:
        sent: when its message was sent, in ms since the epoch. A sweep that submits many jobs makes
            their ids long before.
        now: the time, in ms since the epoch.
    """
    try:
        made = ULID.from_uuid(UUID(job_id)).milliseconds
    except ValueError:
        return False
    return now - max(made, sent) < _STORED_WITHIN_MS


def new(
    workspace: str,
    name: str,
    params: dict[str, Any],
    total: int,
    creator: Creator = NOBODY,
    timeout: float | None = None,
) -> Job:
    """Returns a new pending job, without storing it.

    Args:
        name: the name of the task.
        total: how many units of work the job has.
        timeout: seconds after which it times out; None for the default.
    """
    now = now_ms()
    return Job(
        job_id=new_id(),
        workspace=workspace,
        name=name,
        params=params,
        status=PENDING,
        creation_time=now,
        last_update_time=now,
        creator=creator.username,
        creator_id=creator.user_id,
        key_id=creator.key_id,
        timeout=timeout,
        total=total,
    )


def submit(new_jobs: Iterable[Job]) -> None:
    """Queues and stores new background jobs, such as those in which judges assess traces.

    Raises:
        InvalidParameterValue: the params of a job are too large; jobs before it are stored.
        RequestLimitExceeded: the queue accepts no messages; no job is stored.
        TemporarilyUnavailable: some jobs are stored and queued, others are not.
    """
    for number, job in enumerate(new_jobs):
        stored = creation(job)
        try:
            enqueue(job)
        except errors.RequestLimitExceeded as error:
            if number == 0:
                raise
            raise errors.TemporarilyUnavailable(error.message) from error
        table.put(*stored)


def enqueue(job: Job) -> None:
    """Sends the message about a job to the queue of the judge runner. Must be called before the job
    is stored, so that no stored job lacks its message. The judge runner waits a little if the job
    is not stored yet, and drops the message of a job that was never stored.

    Raises:
        RequestLimitExceeded: the queue accepts no messages.
    """
    try:
        job_queue.send(JobMessage(job.workspace, job.job_id))
    except errors.TemporarilyUnavailable as error:
        raise errors.RequestLimitExceeded(error.message) from error


def creation(job: Job) -> Put:
    """Returns the put of a new job, for a transaction. Raises InvalidParameterValue if its params
    are too large."""
    item = _item(job)
    if _size(item) > _ITEM_BYTES:
        raise errors.InvalidParameterValue(
            "The job is too large to be kept. Ask for fewer traces at a time."
        )
    absent = ConditionExpression()
    absent.require_absent(JobItem.PK)
    return Put(item, absent)


def replacement(job: Job) -> Put:
    """Returns the put of a changed job, for a transaction. The put fails if the job was written
    since it was read."""
    unchanged = ConditionExpression()
    unchanged.require_equal(JobItem.version, job.version)
    return Put(_item(job._replace(last_update_time=now_ms())), unchanged)


def delete(workspace: str, job_id: str) -> None:
    """Deletes a background job. A worker of the job stops when it next writes its progress."""
    table.delete(keys.job(workspace, job_id))


def find(workspace: str, job_id: str) -> Job | None:
    """Returns an MLflow job; None if the workspace has none of this id. One consistent GetItem."""
    raw = table.get(keys.job(workspace, job_id))
    return None if raw is None else of_item(raw)


def of_workspace(workspace: str) -> Iterator[Job]:
    """Yields a workspace's background jobs, oldest first; one consistent Query per MB."""
    pk = keys.job(workspace, "").pk
    return map(of_item, table.query_all(pk, prefix=keys.job_prefix()))


def change(workspace: str, job_id: str, decide: Callable[[Job], Job | None]) -> Job | None:
    """Reads a job and writes the job that ``decide`` returns; repeats both after each conflict with
    another writer. Returns the job afterwards; None if it does not exist.

    Args:
        decide: returns the changed job, None for no change; raises if the change is not allowed.
    """

    def attempt() -> Job | None:
        current = find(workspace, job_id)
        if current is None:
            return None
        changed = decide(current)
        return current if changed is None else replace(changed)

    return retry_on_conflict("job", attempt)


def replace(job: Job) -> Job:
    """Writes a changed job and returns it as written. A job whose results are too large for an item
    is written as failed. Raises WriteConflict if it was written since it was read."""
    job = job._replace(last_update_time=now_ms())
    item = _item(job)
    if _size(item) > _ITEM_BYTES:
        message = "The results of the job are too large to be kept; judge fewer traces at a time."
        job = job._replace(status=FAILED, result=None, error_message=message)
        item = _item(job)
    unchanged = ConditionExpression()
    unchanged.require_equal(JobItem.version, job.version)
    try:
        table.put(item, unchanged)
    except ConditionFailed as failed:
        raise WriteConflict from failed
    return job._replace(version=job.version + 1)


def _item(job: Job) -> Raw:
    key = keys.job(job.workspace, job.job_id)
    item = JobItem(
        PK=key.pk,
        SK=key.sk,
        job_id=job.job_id,
        workspace=job.workspace,
        name=job.name,
        params=_packed(job.params),
        status=job.status,
        creation_time=job.creation_time,
        last_update_time=job.last_update_time,
        creator=job.creator,
        creator_id=job.creator_id,
        key_id=job.key_id,
        timeout=None if job.timeout is None else repr(job.timeout),
        result=None if job.result is None else _packed(job.result),
        error_message=job.error_message,
        retry_count=job.retry_count,
        completed=job.completed,
        total=job.total,
        lease_until=job.lease_until,
        summary=None if job.summary is None else _packed(job.summary),
        dollars=None if job.dollars is None else repr(job.dollars),
        stage=job.stage,
        throttled=job.throttled or None,
        version=job.version + 1,
        updated_at=now_ms(),
        ttl=int(time.time()) + KEPT_SECONDS,
    )
    return item.serialize()


def of_item(raw: Raw) -> Job:
    """Returns the MLflow job (such as ``invoke_scorer``) that an item holds."""
    item = JobItem.of(raw)
    return Job(
        job_id=item.job_id,
        workspace=item.workspace,
        name=item.name,
        params=_unpacked(item.params),
        status=item.status,
        creation_time=item.creation_time,
        last_update_time=item.last_update_time,
        creator=item.creator,
        creator_id=item.creator_id,
        key_id=item.key_id,
        timeout=None if item.timeout is None else float(item.timeout),
        result=None if item.result is None else _unpacked(item.result),
        error_message=item.error_message,
        retry_count=item.retry_count,
        completed=item.completed,
        total=item.total,
        lease_until=item.lease_until,
        summary=None if item.summary is None else _unpacked(item.summary),
        dollars=None if item.dollars is None else float(item.dollars),
        stage=item.stage,
        throttled=item.throttled or 0,
        version=item.version,
    )


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


def _size(item: Raw) -> int:
    return sum(
        len(name) + len(next(iter(value.values()), b""))
        for name, value in item.items()
        if "S" in value or "B" in value
    )
