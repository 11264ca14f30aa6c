"""Finds, creates and checks the experiments in which the calls of gateway endpoints are traced."""

from __future__ import annotations

from typing import Final

from mlcore import errors, ids
from mlcore.auth.permissions import canonical_experiment_id
from mlcore.entities.experiments import Experiment
from mlcore.entities.gateway import Endpoint
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments.creations import ExperimentNameTaken, IdTaken

SOURCE_TYPE: Final = "mlflow.experiment.sourceType"
SOURCE_ID: Final = "mlflow.experiment.sourceId"
IS_GATEWAY: Final = "mlflow.experiment.isGateway"


def get_or_create(endpoint: Endpoint, workspace: str) -> str:
    """Returns the id of the experiment for the traces of a gateway endpoint, which is named
    ``gateway/<endpoint name>``; creates it if it is missing.

    Raises:
        WriteConflict: an experiment of this name existed and was renamed or removed for good
            meanwhile. The caller tries again.
    """
    name = f"gateway/{endpoint.name}"
    existing = experiments.find_by_name(workspace, name)
    if existing is not None:
        return existing.experiment_id
    for experiment_id in experiment_ids.unused_ids():
        now = ids.now_ms()
        new_experiment = Experiment(
            experiment_id=experiment_id,
            name=name,
            artifact_location=experiments.default_location(experiment_id, workspace),
            lifecycle_stage=ACTIVE,
            creation_time=now,
            last_update_time=now,
            tags={
                SOURCE_TYPE: "GATEWAY",
                SOURCE_ID: endpoint.endpoint_id,
                IS_GATEWAY: "true",
            },
            workspace=workspace,
        )
        try:
            experiments.create(new_experiment)
        except IdTaken:
            continue
        except ExperimentNameTaken as taken:
            existing = experiments.find_by_name(workspace, name)
            if existing is None:
                raise WriteConflict from taken
            return existing.experiment_id
        return experiment_id
    raise AssertionError  # experiment_ids.unused_ids() never ends


def check_id(experiment_id: str, workspace: str) -> str:
    """Returns the canonical form of the id of an existing experiment of the workspace.

    Raises:
        InvalidParameterValue: the id is neither a number nor that of an imported experiment.
        BadRequest: the experiment does not exist. MLflow answers 400 here, because its database
            rejects the foreign key.
    """
    canonical = canonical_experiment_id(experiment_id)
    if experiments.find(canonical, workspace) is not None:
        return canonical
    if not canonical.lstrip("-").isdecimal():
        raise errors.InvalidParameterValue(
            f"Invalid experiment ID '{experiment_id}'. Experiment ID must be a valid integer."
        )
    raise errors.BadRequest(f"No Experiment with id={experiment_id} exists")
