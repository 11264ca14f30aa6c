"""The experiment that something is in: there, active, and of the caller's workspace."""

from __future__ import annotations

from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import ACTIVE
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.repos.experiments import experiments


def experiment(experiment_id: str, request: Request) -> Experiment:
    """Raises ResourceDoesNotExist."""
    return experiments.get(limits.experiment_id(experiment_id), request.workspace).experiment


def active(experiment_id: str, request: Request) -> Experiment:
    """Raises InvalidParameterValue: it is deleted."""
    owner = limits.experiment_id(experiment_id)
    return experiments.get_active(owner, request.workspace).experiment


def not_deleted(experiment_id: str, request: Request) -> Experiment:
    """A deleted one looks missing."""
    found = experiment(experiment_id, request)
    if found.lifecycle_stage != ACTIVE:
        raise experiments.missing(found.experiment_id)
    return found
