"""Where the files of a run, a logged model or a model version are."""

from __future__ import annotations

from mlcore import errors
from mlcore.http import Request
from mlcore.repos import logged_models, runs


def of_run(run_id: str, request: Request) -> str:
    """Raises ResourceDoesNotExist, also for a run of another workspace."""
    read = runs.load(run_id)
    if read.experiment.workspace != request.workspace:
        raise runs.missing(run_id)
    location: str = read.document.item["artifact_uri"]["S"]
    return location


def of_logged_model(model_id: str, request: Request) -> str:
    """Raises ResourceDoesNotExist, also for a deleted model and one of another workspace."""
    return logged_models.artifact_location(model_id, request.workspace)


def of_model_version(name: str, version: str, request: Request) -> str:
    """Raises ResourceDoesNotExist."""
    raise errors.ResourceDoesNotExist(f"Model Version (name={name}, version={version}) not found")
