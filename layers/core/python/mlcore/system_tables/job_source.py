"""Reads jobs from the table, strongly consistently, for the system tables. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.models.evaluation import Job
from mlcore.repos.evaluation import jobs
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.entity_kinds import JOBS, EntityRef
from mlcore.system_tables.job_rows import JobRow, job_row
from mlcore.system_tables.run_source import in_parts


def find_jobs(refs: Collection[EntityRef], _: Mapping[str, str]) -> Iterator[JobRow]:
    """Yields the rows (of the system table ``jobs``) of the existing jobs among those given. Sends
    one BatchGetItem per hundred jobs.

    Args:
        refs: (job id, workspace).
    """
    for part in in_parts(refs):
        items = table.batch_get([keys.job(workspace, job_id) for job_id, workspace in part])
        for raw in items:
            if raw is not None:
                yield job_row(jobs.of_item(raw), Job.of(raw).updated_at or 0)


def job_refs() -> Iterator[EntityRef]:
    """Yields the references (job id, workspace) of all jobs; one Query per workspace and MB."""
    for workspace in workspaces.names():
        pk = keys.job(workspace, "").pk
        for raw in table.query_all(pk, prefix=keys.job_prefix()):
            yield JOBS.ref_of(raw)
