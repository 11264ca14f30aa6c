"""Reads jobs from the table, strongly consistently, and converts them to rows of ``jobs``. Writes
nothing. Times are milliseconds since 1970 here, and microseconds in the table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.evaluation.jobs import Job, deadline
from mlcore.models.evaluation import Job as JobItem
from mlcore.repos.evaluation import jobs
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.dataset_rows import json_text
from mlcore.system_tables.entity_kinds import JOBS, EntityRef
from mlcore.system_tables.rows import within
from mlcore.system_tables.source import in_parts
from mlcore.wire.json_text import storable


class JobRow(NamedTuple):
    """A row of ``jobs``, without the column of the AWS account. ``params`` and ``result`` are
    JSON. A job that did not end before its ``deadline`` has timed out, whatever its status."""

    job_id: str
    workspace_id: str
    job_name: str
    status: str
    creator: str | None
    create_time: int
    last_update_time: int
    update_time: int
    deadline: int
    experiment_id: str | None
    params: str
    result: str | None
    error_message: str | None
    retry_count: int
    completed: int | None
    total: int | None


def find_jobs(refs: Collection[EntityRef], _: Mapping[str, str]) -> Iterator[JobRow]:
    """Yields the rows of the existing jobs among those given. Sends one BatchGetItem per hundred
    jobs.

    Args:
        refs: (job id, workspace).
    """
    for part in in_parts(refs):
        items = table.batch_get([keys.job(workspace, job_id) for job_id, workspace in part])
        for raw in items:
            if raw is not None:
                yield _row(jobs.of_item(raw), JobItem.of(raw).updated_at or 0)


def job_refs() -> Iterator[EntityRef]:
    """Yields the references (job id, workspace) of all jobs; one Query per workspace and MB."""
    for workspace in workspaces.names():
        pk = keys.job(workspace, "").pk
        for raw in table.query_all(pk, prefix=keys.job_prefix()):
            yield JOBS.ref_of(raw)


def _row(job: Job, updated_ms: int) -> JobRow:
    experiment = job.params.get("experiment_id")
    error = job.error_message
    return JobRow(
        job_id=job.job_id,
        workspace_id=job.workspace,
        job_name=job.name,
        status=job.status,
        creator=job.creator,
        create_time=within(job.creation_time),
        last_update_time=within(job.last_update_time),
        update_time=within(updated_ms),
        deadline=within(deadline(job)),
        experiment_id=experiment if isinstance(experiment, str) else None,
        params=json_text(job.params),
        result=None if job.result is None else json_text(job.result),
        error_message=None if error is None else storable(error),
        retry_count=job.retry_count,
        completed=job.completed,
        total=job.total,
    )
