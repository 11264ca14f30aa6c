"""The experiment that something is in: there, active, and of the caller's workspace."""

from __future__ import annotations

from mlcore import errors
from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import ACTIVE
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.repos.experiments import experiments


def experiment(experiment_id: str, request: Request) -> Experiment:
    """One of another workspace looks missing. Raises ResourceDoesNotExist."""
    found = experiments.get(limits.experiment_id(experiment_id)).experiment
    if found.workspace != request.workspace:
        raise experiments.missing(found.experiment_id)
    return found


def active(experiment_id: str, request: Request) -> Experiment:
    """Raises InvalidParameterValue: it is deleted."""
    found = experiment(experiment_id, request)
    if found.lifecycle_stage != ACTIVE:
        raise errors.InvalidParameterValue(
            f"The experiment {found.experiment_id} must be in the 'active' state. "
            f"Current state is {found.lifecycle_stage}."
        )
    return found


def not_deleted(experiment_id: str, request: Request) -> Experiment:
    """A deleted one looks missing."""
    found = experiment(experiment_id, request)
    if found.lifecycle_stage != ACTIVE:
        raise experiments.missing(found.experiment_id)
    return found


def is_known(experiment_id: str, request: Request) -> bool:
    """Whether the experiment is there, deleted or not, and of the caller's workspace."""
    (found,) = experiments.find_many([experiment_id])
    return found is not None and found.workspace == request.workspace
