"""Deletion of a run as MLflow's server does it: with the assessments of traces that the run made.
Restoring the run does not bring these back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcore.db.table import table
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.repos.runs.core import run_writes
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.traces import run_assessments


def mark_deleted(run: StoredRun, workspace: str) -> None:
    """Marks a run of a workspace as deleted, and deletes its assessments. Idempotent. Raises
    ResourceDoesNotExist if the run was permanently deleted meanwhile."""
    calls: list[Callable[[], Any]] = [
        lambda: run_writes.set_stage(run, DELETED),
        lambda: run_assessments.assessed_traces(run.run_id),
    ]
    _, assessed = table.parallel(calls)
    run_assessments.delete(run.run_id, assessed, workspace)
