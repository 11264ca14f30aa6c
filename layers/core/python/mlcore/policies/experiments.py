"""Permission checks for requests about experiments."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth.permissions import (
    ANY,
    ASSESSMENT,
    EXPERIMENT,
    LOGGED_MODEL,
    RUN,
    SCORER,
    TRACE,
)
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.policies import location_rights
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import (
    inherited,
    on_experiment,
    subject,
)
from mlcore.repos.experiments import experiments
from mlcore.wire.untyped_message import text

CONTENTS = (RUN, TRACE, LOGGED_MODEL, ASSESSMENT, "review_queue", SCORER, "scorer_version")
"""Resource types that are deleted and restored together with their experiment."""


def create(access: Access, message: Any) -> bool:
    """Allows creating an experiment to callers who may create in the workspace. Raises
    PermissionDenied if the chosen artifact location belongs to somebody else."""
    if not (access.may_create() and access.allows(Requirement(EXPERIMENT, ANY, NOT_DENIED))):
        return False
    if message.artifact_location:
        location_rights.check_choice(access, message.artifact_location)
    return True


def read_by_name(access: Access, message: Any) -> bool:
    """Allows reading the experiment with this name if the caller may read it. Raises
    ResourceDoesNotExist for a missing name, for every caller as on MLflow's server."""
    name = subject(message, "experiment_name")
    experiment = experiments.find_by_name(access.workspace, name)
    if experiment is None:
        raise errors.ResourceDoesNotExist(f"Could not find experiment with name {name}")
    return access.allows(Requirement(EXPERIMENT, experiment.experiment_id, "read"))


def delete(access: Access, message: Any) -> bool:
    """Requires the right to delete the experiment and everything in it."""
    experiment_id = subject(message, "experiment_id")
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "delete"),
        *(inherited(experiment_id, resource_type, "delete") for resource_type in CONTENTS),
    )


def manage(access: Access, message: Any) -> bool:
    return access.allows(Requirement(EXPERIMENT, text(message, "experiment_id"), "manage"))


def search_datasets(access: Access, message: Any) -> bool:
    return access.allows(
        *(
            Requirement(EXPERIMENT, experiment_id, "read")
            for experiment_id in dict.fromkeys(message.experiment_ids)
        )
    )


manage_experiment = on_experiment("manage")
read_experiment = on_experiment("read")
update_experiment = on_experiment("update")
