"""The experiments that endpoints are traced in."""

from __future__ import annotations

from typing import Final

from mlcore import errors, ids
from mlcore.auth.permissions import experiment_named
from mlcore.entities.experiments import Experiment
from mlcore.entities.gateway import Endpoint
from mlcore.entities.stages import ACTIVE
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments.creations import IdTaken, NameTaken
from mlcore.settle import Conflict

SOURCE_TYPE: Final = "mlflow.experiment.sourceType"
SOURCE_ID: Final = "mlflow.experiment.sourceId"
IS_GATEWAY: Final = "mlflow.experiment.isGateway"


def of_endpoint(endpoint: Endpoint, workspace: str) -> str:
    """The id of ``gateway/<name>``, which is made unless it is there. Raises Conflict: it was
    renamed at this moment."""
    name = f"gateway/{endpoint.name}"
    found = experiments.find_by_name(workspace, name)
    if found is not None:
        return found.experiment_id
    for experiment_id in experiment_ids.free():
        now = ids.now_ms()
        made = Experiment(
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
            experiments.create(made)
        except IdTaken:
            continue
        except NameTaken as taken:
            found = experiments.find_by_name(workspace, name)
            if found is None:
                raise Conflict from taken
            return found.experiment_id
        return experiment_id
    raise AssertionError  # the numbers do not end


def checked(experiment_id: str, workspace: str) -> str:
    """The id of an experiment of the workspace.

    Raises:
        InvalidParameterValue: it is no number, and no id of an imported experiment.
        BadRequest: there is no such experiment, which MLflow's database refuses so.
    """
    canonical = experiment_named(experiment_id)
    if experiments.find(canonical, workspace) is not None:
        return canonical
    if not canonical.lstrip("-").isdecimal():
        raise errors.InvalidParameterValue(
            f"Invalid experiment ID '{experiment_id}'. Experiment ID must be a valid integer."
        )
    raise errors.BadRequest(f"No Experiment with id={experiment_id} exists")
