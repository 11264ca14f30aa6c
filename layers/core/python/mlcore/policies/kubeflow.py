"""Decides who may do which actions through Kubeflow's API (``docs/adr/0039``).

Models, versions, experiments and runs are MLflow's, and the same grants apply to them. The rights
on an inference service are those on the model that it serves. Everybody in the workspace may read
environments and standalone artifacts; their creator and administrators of the workspace may change
them.

A policy decides on the same entities that the function will read or write, because both get the
same parsed request. A missing entity needs the same right as a hidden one of its kind, so that 403
does not reveal which ids and names exist. Kubeflow's ids are *numbers*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, REGISTERED_MODEL_VERSION, RUN
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.db import keys
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EXPERIMENT as EXPERIMENT_KIND
from mlcore.kubeflow.kinds import (
    EXPERIMENT_RUN,
    MODEL_ARTIFACT,
    MODEL_VERSION,
    EntityKind,
)
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL_KIND
from mlcore.kubeflow.registry_request import RegistryRequest
from mlcore.models.kubeflow import Artifact, ContextRef, NumberedItem
from mlcore.policies.access import Access
from mlcore.policies.experiments import CONTENTS
from mlcore.policies.registry import may_name_source
from mlcore.policies.shared_rules import create_inside, inherited, inside
from mlcore.repos.kubeflow import artifacts, entities, numbers, runs, transaction_steps
from mlcore.repos.kubeflow import experiments as kubeflow_experiments

Policy = Callable[[Access, RegistryRequest], bool]

NO_ENTITY: Final = -1
"""A number that no entity has."""


# ------------------------------------------------------------------ models, versions, runs


def _on_model_named(access: Access, name: str, action: str) -> bool:
    return access.allows(Requirement(REGISTERED_MODEL, name, action))


def on_version_of(access: Access, model_name: str, action: str) -> bool:
    """Whether the caller may do the action on the versions of a registered model, which inherit the
    grants on the model."""
    parent_model = InheritedFrom(REGISTERED_MODEL, model_name, action)
    return access.allows(
        Requirement(REGISTERED_MODEL, model_name, "read"),
        Requirement(REGISTERED_MODEL_VERSION, ANY, action, (parent_model,)),
    )


def _on_run_in(access: Access, experiment_id: str, action: str) -> bool:
    return access.allows(*inside(experiment_id, RUN, action))


def _reference(access: Access, kind: EntityKind, number: int) -> ContextRef | None:
    return numbers.of_kind(numbers.raw(number), kind.name, access.workspace)


def model_name_of(access: Access, number: int) -> str:
    """Returns the name of the registered model with this Kubeflow number; an empty text if the
    workspace has no such model."""
    reference = _reference(access, MODEL_KIND, number)
    return "" if reference is None else reference.name or ""


def _experiment_id(access: Access, number: int) -> str:
    """Returns the id of the experiment with this number; an empty text if the workspace has no such
    experiment."""
    read = kubeflow_experiments.find(number, access.workspace)
    return "" if read is None else read.experiment.experiment_id


def on_model_numbered(access: Access, number: int, action: str) -> bool:
    return _on_model_named(access, model_name_of(access, number), action)


def on_version_numbered(access: Access, number: int, action: str) -> bool:
    reference = _reference(access, MODEL_VERSION, number)
    name = "" if reference is None else model_name_of(access, reference.parent or 0)
    return on_version_of(access, name, action)


def _on_run(access: Access, number: int, action: str) -> bool:
    reference = _reference(access, EXPERIMENT_RUN, number)
    experiment_id = "" if reference is None else keys.experiment_id_of(reference.item_pk)
    return _on_run_in(access, experiment_id, action)


def _on_experiment(access: Access, number: int, action: str) -> bool:
    return access.allows(Requirement(EXPERIMENT, _experiment_id(access, number), action))


def required_reference(request: RegistryRequest, field: str) -> int:
    """Returns the number of a Kubeflow entity in a field that the request's parser has required;
    ``NO_ENTITY`` if the field is empty."""
    number = request.reference(field)
    return NO_ENTITY if number is None else number


def external_number(access: Access, kind: EntityKind, request: RegistryRequest) -> int:
    """Returns the Kubeflow number of the entity whose external id the request names; ``NO_ENTITY``
    if no entity has it."""
    number = transaction_steps.find_external(
        access.workspace, kind, request.arguments["externalId"]
    )
    return NO_ENTITY if number is None else number


def reads_workspace(access: Access) -> bool:
    """Whether the caller may read those entities of Kubeflow's model registry that everybody in the
    workspace may read, such as serving environments."""
    return access.allows(Requirement(REGISTERED_MODEL, "", "read")) or access.may_create()


# ------------------------------------------------------------------ models


def on_model(action: str) -> Policy:
    def policy(access: Access, request: RegistryRequest) -> bool:
        return on_model_numbered(access, request.id, action)

    return policy


def find_model(access: Access, request: RegistryRequest) -> bool:
    if name := request.arguments.get("name"):
        return _on_model_named(access, name, "read")
    return on_model_numbered(access, external_number(access, MODEL_KIND, request), "read")


def create_model(access: Access, request: RegistryRequest) -> bool:
    requirement = Requirement(REGISTERED_MODEL, request.values["name"], NOT_DENIED)
    return access.may_create() and access.allows(requirement)


def delete_model(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to delete the registered model and all of its versions."""
    name = model_name_of(access, request.id)
    return _on_model_named(access, name, "delete") and on_version_of(access, name, "delete")


# ------------------------------------------------------------------ versions


def on_version(action: str) -> Policy:
    def policy(access: Access, request: RegistryRequest) -> bool:
        return on_version_numbered(access, request.id, action)

    return policy


def on_versions_of_model(action: str) -> Policy:
    """Returns the policy that requires the action on versions of the registered model that the path
    names."""

    def policy(access: Access, request: RegistryRequest) -> bool:
        return on_version_of(access, model_name_of(access, request.id), action)

    return policy


def find_version(access: Access, request: RegistryRequest) -> bool:
    if request.names_child:
        return on_version_of(access, model_name_of(access, request.parent), "read")
    return on_version_numbered(access, external_number(access, MODEL_VERSION, request), "read")


def create_version(access: Access, request: RegistryRequest) -> bool:
    return _makes_version(
        access, model_name_of(access, required_reference(request, "registeredModelId"))
    )


def _makes_version(access: Access, model_name: str) -> bool:
    return access.allows(
        Requirement(REGISTERED_MODEL, model_name, "update"),
        Requirement(REGISTERED_MODEL_VERSION, ANY, NOT_DENIED),
    )


def write_version_in_model(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to make versions in the model that the URL's path names and, if the
    request's body has an ``id``, to update the version with this id, which may belong to another
    model."""
    version_number = request.reference("id")
    if version_number is not None and not on_version_numbered(access, version_number, "update"):
        return False
    return _makes_version(access, model_name_of(access, request.id))


# ------------------------------------------------------------------ artifacts


def on_artifact(action: str) -> Policy:
    def policy(access: Access, request: RegistryRequest) -> bool:
        return _on_artifact(access, request.id, action)

    return policy


def _on_artifact(access: Access, number: int, action: str) -> bool:
    """Whether the caller may do the action on an artifact. The right is that on the version or run
    under which the artifact was created. Everybody in the workspace may read a standalone artifact,
    and its creator may change it."""
    raw = entities.find_many(MODEL_ARTIFACT.name, [number])
    item = Artifact.of(raw[0]) if raw else None
    if item is None or item.workspace != access.workspace:
        return on_version_of(access, "", action) and _on_run_in(access, "", action)
    if item.parent is None:
        return reads_workspace(access) if action == "read" else is_owner(access, raw[0])
    if item.model is not None:
        return on_version_numbered(access, item.parent, action)
    return _on_run(access, item.parent, action)


def find_artifact(access: Access, request: RegistryRequest) -> bool:
    """Checks a search for a Kubeflow artifact: requires the right to read its parent if the request
    names that, else one artifact with the external id. (The route returns only readable ones.)"""
    if request.names_child:
        item = numbers.raw(request.parent)
        if numbers.of_kind(item, EXPERIMENT_RUN.name, access.workspace) is not None:
            return _on_run(access, request.parent, "read")
        if numbers.of_kind(item, MODEL_VERSION.name, access.workspace) is not None:
            return on_version_numbered(access, request.parent, "read")
        return _on_artifact(access, NO_ENTITY, "read")
    external = request.arguments["externalId"]
    raws = artifacts.external(external, request.artifact_kinds, access.workspace)
    numbers_found = [*(Artifact.of(raw).number for raw in raws), NO_ENTITY]
    return any(_on_artifact(access, number, "read") for number in numbers_found)


def list_artifacts(access: Access, request: RegistryRequest) -> bool:
    """Allows everybody in the workspace to list Kubeflow's artifacts. The route's function removes
    those that the caller may not read."""
    return reads_workspace(access)


def write_artifact_of_version(access: Access, request: RegistryRequest) -> bool:
    return on_version_numbered(access, request.id, "update") and _writes_artifact(access, request)


def write_artifact_of_run(access: Access, request: RegistryRequest) -> bool:
    return _on_run(access, request.id, "update") and _writes_artifact(access, request)


def _writes_artifact(access: Access, request: RegistryRequest) -> bool:
    """Whether the caller may update the artifact that the body's ``id`` names, which may have
    another parent, and read the files that the body's ``uri`` names."""
    artifact_number = request.reference("id")
    if artifact_number is not None and not _on_artifact(access, artifact_number, "update"):
        return False
    return _names_readable_files(access, request)


def update_artifact(access: Access, request: RegistryRequest) -> bool:
    return _on_artifact(access, request.id, "update") and _names_readable_files(access, request)


def _names_readable_files(access: Access, request: RegistryRequest) -> bool:
    uri = request.values.get("uri")
    return not uri or may_name_source(access, uri)


def create_own(access: Access, request: RegistryRequest) -> bool:
    """Allows creating a serving environment or a standalone artifact to callers who may create in
    the workspace and may read the files that it names."""
    return access.may_create() and _names_readable_files(access, request)


def is_owner(access: Access, raw: dict[str, Any]) -> bool:
    if access.administrates(access.workspace):
        return True
    return NumberedItem.of(raw).created_by == access.username


# ------------------------------------------------------------------ experiments and runs


def find_experiment(access: Access, request: RegistryRequest) -> bool:
    if name := request.arguments.get("name"):
        read = kubeflow_experiments.find_by_name(access.workspace, name)
        experiment_id = "" if read is None else read.experiment.experiment_id
        return access.allows(Requirement(EXPERIMENT, experiment_id, "read"))
    return _on_experiment(access, external_number(access, EXPERIMENT_KIND, request), "read")


def create_experiment(access: Access, request: RegistryRequest) -> bool:
    return access.may_create() and access.allows(Requirement(EXPERIMENT, ANY, NOT_DENIED))


def read_experiment(access: Access, request: RegistryRequest) -> bool:
    return _on_experiment(access, request.id, "read")


def update_experiment(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to update the experiment; for archiving or restoring it, the right to
    delete it, as in MLflow."""
    read = kubeflow_experiments.find(request.id, access.workspace)
    if read is not None and _changes_state(request, kubeflow_experiments.entity_of(read)):
        return _deletes_experiment(access, read.experiment.experiment_id)
    return _on_experiment(access, request.id, "update")


def delete_experiment(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to delete the experiment and everything in it."""
    return _deletes_experiment(access, _experiment_id(access, request.id))


def _deletes_experiment(access: Access, experiment_id: str) -> bool:
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "delete"),
        *(inherited(experiment_id, resource_type, "delete") for resource_type in CONTENTS),
    )


def _changes_state(request: RegistryRequest, entity: Entity) -> bool:
    """Whether the request changes the entity's state, between ``LIVE`` and ``ARCHIVED``."""
    state: str = entity.fields["state"]
    return bool(request.values.get("state", state) != state)


def read_runs_of_experiment(access: Access, request: RegistryRequest) -> bool:
    return _on_run_in(access, _experiment_id(access, request.id), "read")


def create_run(access: Access, request: RegistryRequest) -> bool:
    return _makes_run(access, _experiment_id(access, required_reference(request, "experimentId")))


def write_run_in_experiment(access: Access, request: RegistryRequest) -> bool:
    """Requires the right to make runs in the experiment of the path, and the right to update the
    run that the body's ``id`` names, which may belong to another experiment."""
    run_number = request.reference("id")
    if run_number is not None and not _updates_run(access, run_number, request):
        return False
    return _makes_run(access, _experiment_id(access, request.id))


def _makes_run(access: Access, experiment_id: str) -> bool:
    return access.allows(*create_inside(experiment_id, RUN))


def on_run(action: str) -> Policy:
    def policy(access: Access, request: RegistryRequest) -> bool:
        return _on_run(access, request.id, action)

    return policy


def update_run(access: Access, request: RegistryRequest) -> bool:
    return _updates_run(access, request.id, request)


def _updates_run(access: Access, number: int, request: RegistryRequest) -> bool:
    """Whether the caller may update a run; if the request archives or restores it, also whether the
    caller may delete it."""
    if not _on_run(access, number, "update"):
        return False
    read = runs.find(number, access.workspace) if "state" in request.values else None
    return (
        read is None
        or not _changes_state(request, runs.entity_of(read))
        or _on_run(access, number, "delete")
    )


def find_run(access: Access, request: RegistryRequest) -> bool:
    if request.names_child:
        return _on_run_in(access, _experiment_id(access, request.parent), "read")
    return _on_run(access, external_number(access, EXPERIMENT_RUN, request), "read")


read_model = on_model("read")
update_model = on_model("update")
read_versions_of_model = on_versions_of_model("read")
read_version = on_version("read")
update_version = on_version("update")
delete_version = on_version("delete")
read_artifact = on_artifact("read")
delete_artifact = on_artifact("update")
read_run = on_run("read")
delete_run = on_run("delete")
