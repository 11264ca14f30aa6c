"""Loads the experiment that a request names, from the caller's workspace. The functions differ in
the error for a deleted experiment, because MLflow's RPCs do."""

from __future__ import annotations

from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.repos.experiments import experiments


def get(experiment_id: str, request: Request) -> Experiment:
    """Returns an experiment of the request's workspace, active or deleted. Raises
    ResourceDoesNotExist, or InvalidParameterValue if the text cannot be an id."""
    return experiments.get(limits.experiment_id(experiment_id), request.workspace).experiment


def get_active(experiment_id: str, request: Request) -> Experiment:
    """Returns an active experiment of the request's workspace. Raises InvalidParameterValue if it
    is deleted or the text cannot be an id, ResourceDoesNotExist if it is missing."""
    owner = limits.experiment_id(experiment_id)
    return experiments.get_active(owner, request.workspace).experiment


def get_unless_deleted(experiment_id: str, request: Request) -> Experiment:
    """Returns an active experiment of the request's workspace. Raises ResourceDoesNotExist if it is
    missing or deleted, InvalidParameterValue if the text cannot be an id."""
    experiment = get(experiment_id, request)
    if experiment.lifecycle_stage != ACTIVE:
        raise experiments.missing(experiment.experiment_id)
    return experiment
