"""Deletes what a client can restore, and then removes it permanently, as ``gc`` does."""

from __future__ import annotations

from mlcore.repos.logged_models import logged_models
from mlcore.repos.removal import permanent_deletion
from mlcore.repos.runs.core import run_writes, runs


def remove_run(run_id: str, experiment_id: str, workspace: str = "default") -> None:
    run_writes.set_stage(runs.load(run_id, workspace), "deleted")
    assert permanent_deletion.run(experiment_id, run_id, workspace)


def remove_model(model_id: str, experiment_id: str) -> None:
    logged_models.delete(logged_models.load(model_id, "default"))
    assert permanent_deletion.logged_model(experiment_id, model_id, "default")
