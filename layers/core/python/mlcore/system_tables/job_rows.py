"""Converts stored evaluation jobs to rows of the system table ``jobs``, without reading anything.
Times are milliseconds since 1970 here, and microseconds in the table."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.entities.evaluation.jobs import Job, deadline
from mlcore.system_tables.dataset_rows import json_text
from mlcore.system_tables.run_rows import within
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


def job_row(job: Job, updated_ms: int) -> JobRow:
    """Returns a job's row of the system table ``jobs``.

    Args:
        updated_ms: when the job's item was last written.
    """
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
