"""Creates, renames, deletes, restores and tags experiments, by the rules of MLflow's tracking
server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments import interrupted_creations
from experiments import messages as m
from mlcore import errors, ids
from mlcore.artifacts import skill_uploads
from mlcore.auth.permissions import EXPERIMENT
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.entities.tags import Tag
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.limits.artifact_locations import make_absolute
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.experiments import experiments, stages
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments import tags as experiment_tags
from mlcore.repos.experiments.creations import ExperimentNameTaken, IdTaken
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.workspaces import trace_retention
from mlcore.responses import experiments as responses


def create_experiment(message: m.CreateExperiment, request: Request) -> dict[str, Any]:
    """Takes the next free number as id, and writes the experiment in one transaction. The name of a
    deleted experiment stays taken.

    If the transaction's result is unknown, the request is answered with an error. If the client
    repeats it in this process, it continues with the same experiment.
    """
    tags = limits.check_create_experiment(message.name, message.artifact_location, message.tags)
    if message.artifact_location and workspaces_enabled():
        raise errors.InvalidParameterValue(
            "artifact_location cannot be specified when workspaces are enabled"
        )
    skill_uploads.check_location(message.artifact_location, request.workspace)
    caller = request.username() or ""
    attempt = interrupted_creations.CreationAttempt(
        request.workspace, caller, message.name, message.artifact_location, tuple(tags)
    )
    experiment = interrupted_creations.take(attempt)
    numbers = experiment_ids.unused_ids()
    while True:
        if experiment is None:
            experiment = _new(next(numbers), message, tags, request.workspace)
        try:
            experiments.create(experiment, request.granting(EXPERIMENT, experiment.experiment_id))
        except IdTaken:
            experiment = None
        except ExperimentNameTaken as taken:
            raise _name_taken(request.workspace, message.name) from taken
        except (errors.TemporarilyUnavailable, errors.RequestLimitExceeded):
            interrupted_creations.remember(attempt, experiment)
            raise
        else:
            return {"experiment_id": experiment.experiment_id}


def _new(
    experiment_id: str, message: m.CreateExperiment, tags: Sequence[Tag], workspace: str
) -> Experiment:
    now = ids.now_ms()
    return Experiment(
        experiment_id=experiment_id,
        name=message.name,
        artifact_location=(
            make_absolute(message.artifact_location)
            if message.artifact_location
            else experiments.default_location(experiment_id, workspace)
        ),
        lifecycle_stage=ACTIVE,
        creation_time=now,
        last_update_time=now,
        tags=dict(tags),
        workspace=workspace,
    )


def get_experiment(message: m.GetExperiment, request: Request) -> dict[str, Any]:
    return {"experiment": _shown(_get(message.experiment_id, request).experiment)}


def get_experiment_by_name(message: m.GetExperimentByName, request: Request) -> dict[str, Any]:
    """Returns the experiment with a name, active or deleted. Raises ResourceDoesNotExist. Usually
    two strongly consistent GetItem: one of the name's item for the id, one of the experiment."""
    experiment = experiments.find_by_name(request.workspace, message.experiment_name)
    if experiment is None:
        raise errors.ResourceDoesNotExist(
            f"Could not find experiment with name '{message.experiment_name}'"
        )
    return {"experiment": _shown(experiment)}


def _shown(experiment: Experiment) -> dict[str, Any]:
    return responses.experiment(experiment, trace_retention.effective(experiment))


def update_experiment(message: m.UpdateExperiment, request: Request) -> dict[str, Any]:
    def attempt() -> None:
        experiment = _get(message.experiment_id, request).experiment
        if experiment.lifecycle_stage != ACTIVE:
            raise errors.InvalidState("Cannot rename a non-active experiment.")
        limits.check_name(message.new_name)
        try:
            if message.new_name == experiment.name:
                experiments.touch(experiment)
            else:
                experiments.rename(experiment, message.new_name)
        except ExperimentNameTaken as taken:
            raise errors.BadRequest(
                f"Experiment(name={message.new_name}) already exists."
            ) from taken

    retry_on_conflict("experiment", attempt)
    return {}


def delete_experiment(message: m.DeleteExperiment, request: Request) -> dict[str, Any]:
    _change_stage(message.experiment_id, request, ACTIVE, DELETED)
    return {}


def restore_experiment(message: m.RestoreExperiment, request: Request) -> dict[str, Any]:
    _change_stage(message.experiment_id, request, DELETED, ACTIVE)
    return {}


def set_experiment_tag(message: m.SetExperimentTag, request: Request) -> dict[str, Any]:
    limits.check_tag(message.key, message.value)

    def attempt() -> None:
        stored = _get_active(message.experiment_id, request)
        limits.check_custom_views(message.experiment_id, message.key, stored.experiment.tags)
        experiment_tags.set_tag(stored, message.key, message.value)

    retry_on_conflict("experiment", attempt)
    return {}


def delete_experiment_tag(message: m.DeleteExperimentTag, request: Request) -> dict[str, Any]:
    def attempt() -> None:
        stored = _get_active(message.experiment_id, request)
        if message.key not in stored.experiment.tags:
            raise errors.ResourceDoesNotExist(
                f"No tag with name: {message.key} in experiment with id "
                f"{stored.experiment.experiment_id}"
            )
        experiment_tags.delete_tag(stored, message.key)

    retry_on_conflict("experiment", attempt)
    return {}


def _get(experiment_id: str, request: Request) -> StoredExperiment:
    return experiments.get(limits.experiment_id(experiment_id), request.workspace)


def _get_active(experiment_id: str, request: Request) -> StoredExperiment:
    return experiments.get_active(limits.experiment_id(experiment_id), request.workspace)


def _change_stage(experiment_id: str, request: Request, source: str, target: str) -> None:
    def attempt() -> None:
        experiment = _get(experiment_id, request).experiment
        if experiment.lifecycle_stage != source:
            raise experiments.missing(experiment_id)
        stages.set_stage(experiment, target)

    retry_on_conflict("experiment", attempt)


def _name_taken(workspace: str, name: str) -> errors.ResourceAlreadyExists:
    holder = experiments.find_by_name(workspace, name)
    if holder is not None and holder.lifecycle_stage == DELETED:
        return errors.ResourceAlreadyExists(
            f"Experiment(name={name}) already exists in deleted state. "
            "Restore it, or permanently delete it, to use the name again."
        )
    return errors.ResourceAlreadyExists(f"Experiment(name={name}) already exists.")
