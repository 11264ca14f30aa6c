"""Moves runs to another experiment of the same workspace."""

from __future__ import annotations

import time
from typing import Any, Final

from mlcore import errors
from mlcore.http import Request
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import moving, runs
from mlcore.repos.runs.core.runs import StoredRun
from runs import messages as m

WORK_SECONDS: Final = 20.0
"""A request with many runs ends after this time; the client repeats it to move the others."""


def move_runs(message: m.MoveRuns, request: Request) -> dict[str, Any]:
    """Moves runs, with their ids, data and files, to the experiment ``experiment_id``. Runs that
    are there already stay unchanged, so a request may be repeated.

    All runs are read and checked before the first one moves. Then each is moved by itself: if one
    fails, the others may be moved, and the client repeats the request. Nested runs name their
    parent in a tag, which stays: move them in one request to keep them nested.

    Raises:
        InvalidParameterValue: the request names no run, or a run or the target is deleted.
        InvalidState: a run's state forbids the move, now or for good
            (:func:`mlcore.repos.runs.core.moving.check_movable`), or a logged model, a trace or an
            issue names the run.
        ResourceDoesNotExist: a run or the target does not exist in this workspace.
        RequestLimitExceeded: the time was too short for all runs.
    """
    started = time.monotonic()
    if not message.run_ids:
        raise errors.InvalidParameterValue("Name at least one run in 'run_ids'.")
    target = experiments.get_active(message.experiment_id, request.workspace).experiment
    stored_runs = [
        run
        for run in runs.load_all(list(dict.fromkeys(message.run_ids)), request.workspace)
        if run.experiment.experiment_id != target.experiment_id
    ]
    for run in stored_runs:
        moving.check_movable(run)
    _check_not_referenced(stored_runs)
    for count, run in enumerate(stored_runs):
        if time.monotonic() - started > WORK_SECONDS:
            raise errors.RequestLimitExceeded(
                f"{count} of {len(stored_runs)} runs were moved. Send the request again."
            )
        moving.move(run.run_id, target)
    return {}


def _check_not_referenced(stored_runs: list[StoredRun]) -> None:
    """Raises InvalidState if a logged model, a trace or an issue names one of the runs."""
    # Imported here, because few requests of this Lambda function search traces.
    from mlcore.repos.removal import run_references  # noqa: PLC0415

    named = run_references.find(stored_runs)
    if named is not None:
        run_id, named_by = named
        raise errors.InvalidState(
            f"The run {run_id} cannot be moved: {named_by} of its experiment names it."
        )
