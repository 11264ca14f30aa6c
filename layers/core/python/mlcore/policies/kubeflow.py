"""Who may do what through Kubeflow's API (``docs/adr/0039``).

Models, versions, experiments and runs are MLflow's, and so are the grants on them. A service is
decided by the model that it serves. Environments and standalone artifacts are read by everybody in
the workspace, and changed by who made them or administrates the workspace.

Every policy decides on the entities that the function will read or write: those of the same parsed
request, of the same kind. An entity that is not there needs the right that a hidden one of its kind
would need, so that 403 does not tell which ids and names exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, REGISTERED_MODEL_VERSION, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.db import keys
from mlcore.kubeflow.asked import Asked
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EXPERIMENT as EXPERIMENT_KIND
from mlcore.kubeflow.kinds import (
    EXPERIMENT_RUN,
    MODEL_ARTIFACT,
    MODEL_VERSION,
    Kind,
)
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL_KIND
from mlcore.models.kubeflow import Artifact, ContextRef, NumberedItem
from mlcore.policies.access import Access
from mlcore.policies.experiments import CONTENTS
from mlcore.policies.registry import may_name_source
from mlcore.policies.requests import creating, inherited, inside
from mlcore.repos.kubeflow import artifacts, entities, numbers, runs, steps
from mlcore.repos.kubeflow import experiments as kubeflow_experiments

Policy = Callable[[Access, Asked], bool]

NOBODYS: Final = -1
"""A number that nothing has."""


# ------------------------------------------------------------------ models, versions, runs


def _on_model_named(access: Access, name: str, action: str) -> bool:
    return access.allows(Requirement(REGISTERED_MODEL, name, action))


def on_version_of(access: Access, model_name: str, action: str) -> bool:
    """An action on a version, which inherits what holds for its model."""
    rung = Rung(REGISTERED_MODEL, model_name, action)
    return access.allows(
        Requirement(REGISTERED_MODEL, model_name, "read"),
        Requirement(REGISTERED_MODEL_VERSION, ANY, action, (rung,)),
    )


def _on_run_in(access: Access, experiment_id: str, action: str) -> bool:
    return access.allows(*inside(experiment_id, RUN, action))


def _reference(access: Access, kind: Kind, number: int) -> ContextRef | None:
    return numbers.of_kind(numbers.raw(number), kind.name, access.workspace)


def model_name_of(access: Access, number: int) -> str:
    """The name of a model; empty for a number that no model of the workspace has."""
    found = _reference(access, MODEL_KIND, number)
    return "" if found is None else found.name or ""


def _experiment_id(access: Access, number: int) -> str:
    """The id of an experiment; empty for a number that no experiment of the workspace has."""
    read = kubeflow_experiments.find(number, access.workspace)
    return "" if read is None else read.experiment.experiment_id


def on_model_numbered(access: Access, number: int, action: str) -> bool:
    return _on_model_named(access, model_name_of(access, number), action)


def on_version_numbered(access: Access, number: int, action: str) -> bool:
    found = _reference(access, MODEL_VERSION, number)
    name = "" if found is None else model_name_of(access, found.parent or 0)
    return on_version_of(access, name, action)


def _on_run(access: Access, number: int, action: str) -> bool:
    found = _reference(access, EXPERIMENT_RUN, number)
    experiment_id = "" if found is None else keys.experiment_id_of(found.item_pk)
    return _on_run_in(access, experiment_id, action)


def _on_experiment(access: Access, number: int, action: str) -> bool:
    return access.allows(Requirement(EXPERIMENT, _experiment_id(access, number), action))


def required_reference(asked: Asked, field: str) -> int:
    """The number in a field that the parser insists on."""
    found = asked.reference(field)
    return NOBODYS if found is None else found


def external_number(access: Access, kind: Kind, asked: Asked) -> int:
    """The number of what has the external id that a find names; one that nothing has for none."""
    found = steps.find_external(access.workspace, kind, asked.arguments["externalId"])
    return NOBODYS if found is None else found


def reads_workspace(access: Access) -> bool:
    """Whether the caller may read what everybody in the workspace may read."""
    return access.allows(Requirement(REGISTERED_MODEL, "", "read")) or access.may_create()


# ------------------------------------------------------------------ models


def on_model(action: str) -> Policy:
    def policy(access: Access, asked: Asked) -> bool:
        return on_model_numbered(access, asked.id, action)

    return policy


def find_model(access: Access, asked: Asked) -> bool:
    if name := asked.arguments.get("name"):
        return _on_model_named(access, name, "read")
    return on_model_numbered(access, external_number(access, MODEL_KIND, asked), "read")


def create_model(access: Access, asked: Asked) -> bool:
    wanted = Requirement(REGISTERED_MODEL, asked.values["name"], NOT_DENIED)
    return access.may_create() and access.allows(wanted)


def delete_model(access: Access, asked: Asked) -> bool:
    """The model, and all of its versions."""
    name = model_name_of(access, asked.id)
    return _on_model_named(access, name, "delete") and on_version_of(access, name, "delete")


# ------------------------------------------------------------------ versions


def on_version(action: str) -> Policy:
    def policy(access: Access, asked: Asked) -> bool:
        return on_version_numbered(access, asked.id, action)

    return policy


def on_versions_of_model(action: str) -> Policy:
    """An action on versions of the model that the path names."""

    def policy(access: Access, asked: Asked) -> bool:
        return on_version_of(access, model_name_of(access, asked.id), action)

    return policy


def find_version(access: Access, asked: Asked) -> bool:
    if asked.names_child:
        return on_version_of(access, model_name_of(access, asked.parent), "read")
    return on_version_numbered(access, external_number(access, MODEL_VERSION, asked), "read")


def create_version(access: Access, asked: Asked) -> bool:
    return _makes_version(
        access, model_name_of(access, required_reference(asked, "registeredModelId"))
    )


def _makes_version(access: Access, model_name: str) -> bool:
    return access.allows(
        Requirement(REGISTERED_MODEL, model_name, "update"),
        Requirement(REGISTERED_MODEL_VERSION, ANY, NOT_DENIED),
    )


def write_version_in_model(access: Access, asked: Asked) -> bool:
    """The model of the path, and the version that the body changes, which may be another
    model's."""
    changed = asked.reference("id")
    if changed is not None and not on_version_numbered(access, changed, "update"):
        return False
    return _makes_version(access, model_name_of(access, asked.id))


# ------------------------------------------------------------------ artifacts


def on_artifact(action: str) -> Policy:
    def policy(access: Access, asked: Asked) -> bool:
        return _on_artifact(access, asked.id, action)

    return policy


def _on_artifact(access: Access, number: int, action: str) -> bool:
    """An artifact belongs to the version or run that it was made under, or to who made it."""
    raw = entities.find_many(MODEL_ARTIFACT.name, [number])
    item = Artifact.of(raw[0]) if raw else None
    if item is None or item.workspace != access.workspace:
        return on_version_of(access, "", action) and _on_run_in(access, "", action)
    if item.parent is None:
        return reads_workspace(access) if action == "read" else is_owner(access, raw[0])
    if item.model is not None:
        return on_version_numbered(access, item.parent, action)
    return _on_run(access, item.parent, action)


def find_artifact(access: Access, asked: Asked) -> bool:
    """The parent, or one of those with the external id; the function leaves out what may not be
    read of what it finds."""
    if asked.names_child:
        found = numbers.raw(asked.parent)
        if numbers.of_kind(found, EXPERIMENT_RUN.name, access.workspace) is not None:
            return _on_run(access, asked.parent, "read")
        if numbers.of_kind(found, MODEL_VERSION.name, access.workspace) is not None:
            return on_version_numbered(access, asked.parent, "read")
        return _on_artifact(access, NOBODYS, "read")
    external = asked.arguments["externalId"]
    raws = artifacts.external(external, asked.artifact_kinds, access.workspace)
    wanted = [*(Artifact.of(raw).number for raw in raws), NOBODYS]
    return any(_on_artifact(access, number, "read") for number in wanted)


def list_artifacts(access: Access, asked: Asked) -> bool:
    """Of versions and runs the answer holds what the caller may read."""
    return reads_workspace(access)


def write_artifact_of_version(access: Access, asked: Asked) -> bool:
    return on_version_numbered(access, asked.id, "update") and _writes_artifact(access, asked)


def write_artifact_of_run(access: Access, asked: Asked) -> bool:
    return _on_run(access, asked.id, "update") and _writes_artifact(access, asked)


def _writes_artifact(access: Access, asked: Asked) -> bool:
    """The artifact that the body changes, which may be another parent's, and the files that it
    names."""
    changed = asked.reference("id")
    if changed is not None and not _on_artifact(access, changed, "update"):
        return False
    return _names_readable_files(access, asked)


def update_artifact(access: Access, asked: Asked) -> bool:
    return _on_artifact(access, asked.id, "update") and _names_readable_files(access, asked)


def _names_readable_files(access: Access, asked: Asked) -> bool:
    uri = asked.values.get("uri")
    return not uri or may_name_source(access, uri)


def create_own(access: Access, asked: Asked) -> bool:
    """An environment, or a standalone artifact."""
    return access.may_create() and _names_readable_files(access, asked)


def is_owner(access: Access, raw: dict[str, Any]) -> bool:
    if access.administrates(access.workspace):
        return True
    return NumberedItem.of(raw).created_by == access.username


# ------------------------------------------------------------------ experiments and runs


def find_experiment(access: Access, asked: Asked) -> bool:
    if name := asked.arguments.get("name"):
        read = kubeflow_experiments.find_by_name(access.workspace, name)
        experiment_id = "" if read is None else read.experiment.experiment_id
        return access.allows(Requirement(EXPERIMENT, experiment_id, "read"))
    return _on_experiment(access, external_number(access, EXPERIMENT_KIND, asked), "read")


def create_experiment(access: Access, asked: Asked) -> bool:
    return access.may_create() and access.allows(Requirement(EXPERIMENT, ANY, NOT_DENIED))


def read_experiment(access: Access, asked: Asked) -> bool:
    return _on_experiment(access, asked.id, "read")


def update_experiment(access: Access, asked: Asked) -> bool:
    """To archive it or to bring it back takes the right to delete it, as in MLflow."""
    read = kubeflow_experiments.find(asked.id, access.workspace)
    if read is not None and _moves(asked, kubeflow_experiments.entity_of(read)):
        return _deletes_experiment(access, read.experiment.experiment_id)
    return _on_experiment(access, asked.id, "update")


def delete_experiment(access: Access, asked: Asked) -> bool:
    """The experiment, and everything in it."""
    return _deletes_experiment(access, _experiment_id(access, asked.id))


def _deletes_experiment(access: Access, experiment_id: str) -> bool:
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "delete"),
        *(inherited(experiment_id, each, "delete") for each in CONTENTS),
    )


def _moves(asked: Asked, entity: Entity) -> bool:
    """Whether a change archives what is live, or brings back what is archived."""
    state: str = entity.fields["state"]
    return bool(asked.values.get("state", state) != state)


def read_runs_of_experiment(access: Access, asked: Asked) -> bool:
    return _on_run_in(access, _experiment_id(access, asked.id), "read")


def create_run(access: Access, asked: Asked) -> bool:
    return _makes_run(access, _experiment_id(access, required_reference(asked, "experimentId")))


def write_run_in_experiment(access: Access, asked: Asked) -> bool:
    """The experiment of the path, and the run that the body changes, which may be another
    experiment's."""
    changed = asked.reference("id")
    if changed is not None and not _updates_run(access, changed, asked):
        return False
    return _makes_run(access, _experiment_id(access, asked.id))


def _makes_run(access: Access, experiment_id: str) -> bool:
    return access.allows(*creating(experiment_id, RUN))


def on_run(action: str) -> Policy:
    def policy(access: Access, asked: Asked) -> bool:
        return _on_run(access, asked.id, action)

    return policy


def update_run(access: Access, asked: Asked) -> bool:
    return _updates_run(access, asked.id, asked)


def _updates_run(access: Access, number: int, asked: Asked) -> bool:
    """As :func:`update_experiment`."""
    if not _on_run(access, number, "update"):
        return False
    read = runs.find(number, access.workspace) if "state" in asked.values else None
    return (
        read is None or not _moves(asked, runs.entity_of(read)) or _on_run(access, number, "delete")
    )


def find_run(access: Access, asked: Asked) -> bool:
    if asked.names_child:
        return _on_run_in(access, _experiment_id(access, asked.parent), "read")
    return _on_run(access, external_number(access, EXPERIMENT_RUN, asked), "read")


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
