"""Who may do what through Kubeflow's API.

Models, versions and experiments are MLflow's, and so are the grants on them; a number that nobody
has, or that is of another workspace, is a model that nobody was granted. What is served is decided
by the model that is served. Environments and standalone artifacts are read by whoever may read at
all, made by whoever may make a model, and changed by whoever made them or administrates the
workspace (``docs/adr/0039``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, REGISTERED_MODEL_VERSION, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.kubeflow import body
from mlcore.kubeflow.kinds import (
    ARTIFACTS,
    EXPERIMENT_RUN,
    INFERENCE_SERVICE,
    MODEL_ARTIFACT,
    MODEL_VERSION,
)
from mlcore.kubeflow.kinds import EXPERIMENT as EXPERIMENT_KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL_KIND
from mlcore.models.kubeflow import Artifact, NumberedItem
from mlcore.policies import file_rights
from mlcore.policies.access import Access
from mlcore.policies.requests import creating, inside
from mlcore.repos.kubeflow import entities, numbers, steps
from mlcore.repos.kubeflow import experiments as kubeflow_experiments

Policy = Callable[[Access, Any], bool]


# ------------------------------------------------------------------ on what


def _on_model(access: Access, name: str, action: str) -> bool:
    return access.allows(Requirement(REGISTERED_MODEL, name, action))


def _on_version(access: Access, name: str, action: str) -> bool:
    rung = Rung(REGISTERED_MODEL, name, action)
    return access.allows(
        Requirement(REGISTERED_MODEL, name, "read"),
        Requirement(REGISTERED_MODEL_VERSION, ANY, action, (rung,)),
    )


def _model_name(access: Access, number: int) -> str:
    """Empty for a number that no model of the workspace has."""
    found = numbers.of_kind(numbers.raw(number), MODEL_KIND.name, access.workspace)
    return "" if found is None else found.name or ""


def _context(access: Access, number: int, action: str) -> bool:
    """An action on what is in a version or a run."""
    raw = numbers.raw(number)
    version = numbers.of_kind(raw, MODEL_VERSION.name, access.workspace)
    if version is not None:
        return _on_version(access, _model_name(access, version.parent or 0), action)
    run = numbers.of_kind(raw, EXPERIMENT_RUN.name, access.workspace)
    if run is not None:
        experiment_id = keys.experiment_id_of(run.item_pk)
        return access.allows(*inside(experiment_id, RUN, action))
    return _on_version(access, "", action)


def _number(request: Any, name: str = "id") -> int:
    return body.number(request.parameters.get(name, ""), "entity")


def _reads(access: Access) -> bool:
    """Whether the caller may read where nothing more is granted."""
    return access.allows(Requirement(REGISTERED_MODEL, "", "read")) or access.may_create()


def _given(request: Any, *names: str) -> dict[str, Any]:
    """Ids and texts of a body, whatever else it holds."""
    data = body.parse(request.body())
    folded = {key.lower(): value for key, value in data.items()}
    return {name: folded.get(name.lower()) for name in names}


def _id_in(request: Any, name: str) -> int:
    value = _given(request, name)[name]
    return body.number(value, name) if isinstance(value, str) and value else 0


# ------------------------------------------------------------------ models and versions


def find_model(access: Access, request: Any) -> bool:
    arguments = request.arguments()
    if arguments.get("name"):
        return _on_model(access, arguments["name"], "read")
    external = arguments.get("externalId", "")
    number = steps.find_external(access.workspace, MODEL_KIND, external) if external else None
    return _on_model(access, _model_name(access, number or 0), "read")


def create_model(access: Access, request: Any) -> bool:
    name = _given(request, "name")["name"]
    wanted = Requirement(
        REGISTERED_MODEL, name if isinstance(name, str) and name else ANY, NOT_DENIED
    )
    return access.may_create() and access.allows(wanted)


def on_model(action: str) -> Policy:
    def policy(access: Access, request: Any) -> bool:
        return _on_model(access, _model_name(access, _number(request)), action)

    return policy


def delete_model(access: Access, request: Any) -> bool:
    """The model, and all of its versions."""
    name = _model_name(access, _number(request))
    return _on_model(access, name, "delete") and _on_version(access, name, "delete")


def find_version(access: Access, request: Any) -> bool:
    return _found(
        access, request, lambda number: _on_model(access, _model_name(access, number), "read")
    )


def _found(access: Access, request: Any, by_parent: Callable[[int], bool]) -> bool:
    """What a find of children names: its parent, or an external id."""
    arguments = request.arguments()
    if arguments.get("name") and arguments.get("parentResourceId"):
        return by_parent(body.number(arguments["parentResourceId"], "entity"))
    external = arguments.get("externalId", "")
    for kind in (MODEL_VERSION, EXPERIMENT_RUN):
        number = steps.find_external(access.workspace, kind, external) if external else None
        if number is not None:
            return _context(access, number, "read")
    return _reads(access)


def create_version(access: Access, request: Any) -> bool:
    return _on_version(access, _model_name(access, _id_in(request, "registeredModelId")), "update")


def on_version(action: str) -> Policy:
    def policy(access: Access, request: Any) -> bool:
        return _context(access, _number(request), action)

    return policy


def write_artifact(access: Access, request: Any) -> bool:
    """A version or a run must allow it, and the files that it names must be readable."""
    if not _context(access, _number(request), "update") or not _may_name_files(access, request):
        return False
    number = _id_in(request, "id")
    return number == 0 or _on_artifact(access, number, "update")


def _may_name_files(access: Access, request: Any) -> bool:
    uri = _given(request, "uri")["uri"]
    return not isinstance(uri, str) or file_rights.may_read(access, uri)


# ------------------------------------------------------------------ artifacts


def find_artifact(access: Access, request: Any) -> bool:
    arguments = request.arguments()
    if arguments.get("name") and arguments.get("parentResourceId"):
        return _context(access, body.number(arguments["parentResourceId"], "entity"), "read")
    external = arguments.get("externalId", "")
    for kind in ARTIFACTS.values() if external else ():
        number = steps.find_external(access.workspace, kind, external)
        if number is not None and not _on_artifact(access, number, "read"):
            return False
    return _reads(access)


def list_artifacts(access: Access, request: Any) -> bool:
    """Of versions and runs the answer holds what the caller may read."""
    return _reads(access)


def on_artifact(action: str) -> Policy:
    def policy(access: Access, request: Any) -> bool:
        return _on_artifact(access, _number(request), action)

    return policy


def update_artifact(access: Access, request: Any) -> bool:
    return _on_artifact(access, _number(request), "update") and _may_name_files(access, request)


def _on_artifact(access: Access, number: int, action: str) -> bool:
    raw = entities.find_many(MODEL_ARTIFACT.name, [number])
    item = Artifact.of(raw[0]) if raw else None
    if item is None or item.workspace != access.workspace:
        return _reads(access)
    if item.parent is not None:
        return _context(access, item.parent, "update" if action == "delete" else action)
    return _reads(access) if action == "read" else _is_owner(access, raw[0])


# ------------------------------------------------------------------ serving


def read_serving(access: Access, request: Any) -> bool:
    return _reads(access)


def create_own(access: Access, request: Any) -> bool:
    """An environment, or a standalone artifact."""
    return access.may_create() and _may_name_files(access, request)


def write_environment(access: Access, request: Any) -> bool:
    key = keys.serving_environment(_number(request))
    return _writes(access, key)


def _writes(access: Access, key: keys.Key) -> bool:
    raw = table.get(key)
    if raw is None or NumberedItem.of(raw).workspace != access.workspace:
        return _reads(access)
    return _is_owner(access, raw)


def _is_owner(access: Access, raw: dict[str, Any]) -> bool:
    if access.administrates(access.workspace):
        return True
    return NumberedItem.of(raw).created_by == access.username


def serve_model(access: Access, request: Any) -> bool:
    """A service is made by who may change the model that it serves."""
    return _on_model(access, _model_name(access, _id_in(request, "registeredModelId")), "update")


def write_service(access: Access, request: Any) -> bool:
    return _on_service(access, request, "update")


def served_model(access: Access, request: Any) -> bool:
    return _on_service(access, request, "read")


def _on_service(access: Access, request: Any, action: str) -> bool:
    raw = entities.find(INFERENCE_SERVICE.name, _number(request), access.workspace)
    if raw is None:
        return _reads(access)
    model = entities.entity_of(raw).fields["registeredModelId"]
    return _on_model(access, _model_name(access, int(model)), action)


# ------------------------------------------------------------------ experiments and runs


def find_experiment(access: Access, request: Any) -> bool:
    arguments = request.arguments()
    kind = EXPERIMENT_KIND
    if arguments.get("name"):
        read = kubeflow_experiments.find_by_name(access.workspace, arguments["name"])
    else:
        external = arguments.get("externalId", "")
        number = steps.find_external(access.workspace, kind, external) if external else None
        read = None if number is None else kubeflow_experiments.find(number, access.workspace)
    experiment_id = "" if read is None else read.experiment.experiment_id
    return access.allows(Requirement(EXPERIMENT, experiment_id, "read"))


def create_experiment(access: Access, request: Any) -> bool:
    return access.may_create()


def _experiment_id(access: Access, number: int) -> str:
    read = kubeflow_experiments.find(number, access.workspace)
    return "" if read is None else read.experiment.experiment_id


def on_experiment(action: str) -> Policy:
    def policy(access: Access, request: Any) -> bool:
        experiment_id = _experiment_id(access, _number(request))
        return access.allows(Requirement(EXPERIMENT, experiment_id, action))

    return policy


def make_run(access: Access, request: Any) -> bool:
    """In the experiment of the path, or of the body."""
    named = "id" in request.parameters
    number = _number(request) if named else _id_in(request, "experimentId")
    changed = _id_in(request, "id") if named else 0
    if changed and not _context(access, changed, "update"):
        return False
    return access.allows(*creating(_experiment_id(access, number), RUN))


def find_run(access: Access, request: Any) -> bool:
    def by_parent(number: int) -> bool:
        return access.allows(*inside(_experiment_id(access, number), RUN, "read"))

    return _found(access, request, by_parent)


read_model = on_model("read")
update_model = on_model("update")
read_version = on_version("read")
update_version = on_version("update")
delete_version = on_version("delete")
read_artifact = on_artifact("read")
delete_artifact = on_artifact("delete")
read_experiment = on_experiment("read")
update_experiment = on_experiment("update")
delete_experiment = on_experiment("delete")
read_run = on_version("read")
update_run = on_version("update")
delete_run = on_version("delete")
