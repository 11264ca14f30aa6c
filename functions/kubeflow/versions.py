"""The rules of model versions: MLflow's, under Kubeflow's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kubeflow import finds, lists
from kubeflow.answers import Call, Made
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL_VERSION
from mlcore.db.table import table
from mlcore.kubeflow import body, merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL
from mlcore.repos.kubeflow import models, numbers, serving, steps, version_lists, versions
from mlcore.repos.kubeflow.versions import Record
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord


def create(call: Call) -> Made:
    parent = call.asked.reference("registeredModelId") or 0
    return Made(_create(call, parent, call.asked.values))


def create_in_model(call: Call) -> Made:
    """The model in the path counts; an entity with an id is updated, with the same status."""
    values = call.asked.values
    changed = call.asked.reference("id")
    if changed is not None:
        return Made(_update(call, versions.get(changed, call.workspace), values))
    return Made(_create(call, call.asked.id, values))


def _create(call: Call, parent: int, values: Values) -> dict[str, Any]:
    """Three round trips: the model's reference; the model, and a number; one transaction."""
    reference = numbers.get(parent, MODEL.name, call.workspace)
    check_stored_name(parent, values["name"])
    found: list[ModelRecord | None] = []
    given: list[int] = []
    calls: list[Callable[[], None]] = [
        lambda: found.append(models.at(reference)),
        lambda: given.extend(numbers.take(numbers.CONTEXTS)),
    ]
    table.parallel(calls)
    (model,) = found
    if model is None:
        raise missing(MODEL.words, parent)
    values = {**values, "registeredModelId": str(parent)}
    entity = merge.created(KIND, given[0], values, ids.now_ms())
    versions.create(entity, model, reference)
    return call.shown(entity)


def check_stored_name(parent: int, name: str) -> None:
    """Raises InvalidParameterValue: names of children have room for their parent's id."""
    if len(f"{parent}:{name}") > body.MAX_LENGTH:
        raise bad(f"name exceeds the maximum length of {body.MAX_LENGTH} characters")


def find(call: Call) -> dict[str, Any]:
    def named(parent: int, name: str) -> Record | None:
        return versions.find_by_name(parent, name, call.workspace)

    return call.shown(versions.entity_of(finds.find_child(call, KIND, named, versions.find)))


def get(call: Call) -> dict[str, Any]:
    return call.shown(versions.entity_of(read_of(call)))


def update(call: Call) -> dict[str, Any]:
    return _update(call, read_of(call), call.asked.values)


def _update(call: Call, read: Record, values: Values) -> dict[str, Any]:
    return call.shown(versions.change(read, lambda entity: merge.merged(entity, values)))


def delete(call: Call) -> None:
    """As MLflow does it, unless something serves the version."""
    read = read_of(call)
    served = partial(serving.unserved_version, read.model.number, call.workspace, read.number)
    versions.delete(read, served)


def list_all(call: Call) -> Any:
    workspace = call.workspace
    reader = call.request.may_read(REGISTERED_MODEL_VERSION)

    def readable(reads: Iterable[Record | None]) -> list[Entity]:
        return [versions.entity_of(one) for one in reads if one and reader(one.model.name or "")]

    def external(value: str) -> list[Entity]:
        number = steps.find_external(workspace, KIND, value)
        return readable([] if number is None else [versions.find(number, workspace)])

    listed = lists.Listed(
        KIND.name,
        lambda places: readable(version_lists.at_places(places, workspace)),
        KIND.name,
        lambda unseen: readable(version_lists.see(unseen, workspace)),
        external=external,
    )
    return lists.page_of(call, KIND.name, listed)


def list_of_model(call: Call) -> Any:
    """Two round trips, whatever the size of the registry. Of a missing model there are none."""
    arguments = call.asked.arguments
    reference = numbers.of_kind(numbers.raw(call.asked.id), MODEL.name, call.workspace)
    found = [] if reference is None else map(versions.entity_of, versions.of_model(reference))
    name, external = arguments.get("name"), arguments.get("externalId")
    chosen = (
        entity
        for entity in found
        if name in (None, entity.name) and external in (None, entity.external_id)
    )
    return lists.page(call, KIND.name, chosen)


def read_of(call: Call) -> Record:
    return versions.get(call.asked.id, call.workspace)
