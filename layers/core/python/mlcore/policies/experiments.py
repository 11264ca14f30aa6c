"""Who may do what with experiments."""

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
from mlcore.policies import places
from mlcore.policies.access import Access
from mlcore.policies.requests import (
    Policy,
    Route,
    anybody,
    inherited,
    named,
    on_experiment,
)
from mlcore.repos import experiments
from mlcore.wire.parameters import text

CONTENTS = (RUN, TRACE, LOGGED_MODEL, ASSESSMENT, "review_queue", SCORER, "scorer_version")
"""What goes, and comes back, with an experiment."""


def create(access: Access, message: Any) -> bool:
    if not (access.may_create() and access.allows(Requirement(EXPERIMENT, ANY, NOT_DENIED))):
        return False
    if message.artifact_location:
        places.check_choice(access, message.artifact_location)
    return True


def read_by_name(access: Access, message: Any) -> bool:
    """A missing name is 404 for everybody, as on MLflow's server."""
    name = named(message, "experiment_name")
    found = experiments.find_by_name(access.workspace, name)
    if found is None:
        raise errors.ResourceDoesNotExist(f"Could not find experiment with name {name}")
    return access.allows(Requirement(EXPERIMENT, found.experiment_id, "read"))


def delete(access: Access, message: Any) -> bool:
    """The experiment, and everything in it."""
    experiment_id = named(message, "experiment_id")
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "delete"),
        *(inherited(experiment_id, each, "delete") for each in CONTENTS),
    )


def manage(access: Access, message: Any) -> bool:
    return access.allows(Requirement(EXPERIMENT, text(message, "experiment_id"), "manage"))


def search_datasets(access: Access, message: Any) -> bool:
    return access.allows(
        *(Requirement(EXPERIMENT, each, "read") for each in dict.fromkeys(message.experiment_ids))
    )


_update = on_experiment("update")

POLICIES: dict[Route, Policy] = {
    ("POST", "/2.0/mlflow/experiments/create"): create,
    ("GET", "/2.0/mlflow/experiments/get"): on_experiment("read"),
    ("GET", "/2.0/mlflow/experiments/get-by-name"): read_by_name,
    ("GET", "/2.0/mlflow/experiments/search"): anybody,
    ("POST", "/2.0/mlflow/experiments/search"): anybody,
    ("POST", "/2.0/mlflow/experiments/search-datasets"): search_datasets,
    ("POST", "/2.0/mlflow/experiments/update"): _update,
    ("POST", "/2.0/mlflow/experiments/set-experiment-tag"): _update,
    ("POST", "/2.0/mlflow/experiments/delete-experiment-tag"): _update,
    ("POST", "/2.0/mlflow/experiments/delete"): delete,
    ("POST", "/2.0/mlflow/experiments/restore"): delete,
    ("POST", "/2.0/mlflow/experiments/permissions/create"): manage,
    ("GET", "/2.0/mlflow/experiments/permissions/get"): manage,
    ("PATCH", "/2.0/mlflow/experiments/permissions/update"): manage,
    ("DELETE", "/2.0/mlflow/experiments/permissions/delete"): manage,
}
