"""Model versions in Kubeflow's API. They are the versions of MLflow's registered models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kubeflow import lists, lookups
from kubeflow.calls import KubeflowCall
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL_VERSION
from mlcore.db.table import table
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import body, merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.errors import invalid, missing_id
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL
from mlcore.repos.kubeflow import models, numbers, serving, version_lists, versions
from mlcore.repos.kubeflow.versions import VersionOfModel
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord


def create(call: KubeflowCall) -> AnswerWithStatus:
    parent = call.parsed.reference("registeredModelId") or 0
    return AnswerWithStatus(_create(call, parent, call.parsed.values))


def create_in_model(call: KubeflowCall) -> AnswerWithStatus:
    """Kubeflow's API: creates a version of the registered model that the path names, whatever model
    the body names. A body with an id updates that version instead, also with the status 201."""
    values = call.parsed.values
    existing_id = call.parsed.reference("id")
    if existing_id is not None:
        return AnswerWithStatus(_update(call, versions.get(existing_id, call.workspace), values))
    return AnswerWithStatus(_create(call, call.parsed.id, values))


def _create(call: KubeflowCall, parent: int, values: Values) -> dict[str, Any]:
    """Creates a version of the model with the number ``parent``. Takes three round trips: the
    reference from that number to the model; the model and, in parallel, a new number; one
    transaction."""
    reference = numbers.get(parent, MODEL.name, call.workspace)
    check_stored_name(parent, values["name"])
    records: list[ModelRecord | None] = []
    new_numbers: list[int] = []
    calls: list[Callable[[], None]] = [
        lambda: records.append(models.at(reference)),
        lambda: new_numbers.extend(numbers.take(numbers.CONTEXTS)),
    ]
    table.parallel(calls)
    (model,) = records
    if model is None:
        raise missing_id(MODEL.words, parent)
    values = {**values, "registeredModelId": str(parent)}
    entity = merge.created(KIND, new_numbers[0], values, ids.now_ms())
    versions.create(entity, model, reference)
    return call.shown(entity)


def check_stored_name(parent: int, name: str) -> None:
    """Checks that a child's name is not too long together with its parent's id, because Kubeflow's
    server stores both in one column. Raises InvalidParameterValue."""
    if len(f"{parent}:{name}") > body.MAX_LENGTH:
        raise invalid(f"name exceeds the maximum length of {body.MAX_LENGTH} characters")


def find(call: KubeflowCall) -> dict[str, Any]:
    def by_name(parent: int, name: str) -> VersionOfModel | None:
        return versions.find_by_name(parent, name, call.workspace)

    return call.shown(versions.entity_of(lookups.find_child(call, KIND, by_name, versions.find)))


def get(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(versions.entity_of(_load(call)))


def update(call: KubeflowCall) -> dict[str, Any]:
    return _update(call, _load(call), call.parsed.values)


def _update(call: KubeflowCall, record: VersionOfModel, values: Values) -> dict[str, Any]:
    return call.shown(versions.change(record, lambda entity: merge.merged(entity, values)))


def delete(call: KubeflowCall) -> None:
    """Deletes a model version, as MLflow's API does. Raises ResourceConflict while a deployed
    inference service serves it."""
    record = _load(call)
    if_unserved = partial(
        serving.unserved_version, record.model.number, call.workspace, record.number
    )
    versions.delete(record, if_unserved)


def list_all(call: KubeflowCall) -> Any:
    may_read = call.request.may_read(REGISTERED_MODEL_VERSION)
    return lists.page_of_shared(
        call,
        KIND,
        lambda record: may_read(record.model.name or ""),
        versions.entity_of,
        version_lists.of_entries,
        version_lists.number_and_read,
        versions.find,
    )


def list_of_model(call: KubeflowCall) -> Any:
    """Lists the versions of a registered model for Kubeflow's API: one GetItem for the model's
    reference (the item that maps its Kubeflow number to MLflow's item), then one Query per MB of
    its versions, independent of the size of the registry. Versions without a number get one first.
    A missing model has an empty list."""
    reference = numbers.of_kind(numbers.raw(call.parsed.id), MODEL.name, call.workspace)
    entities = [] if reference is None else map(versions.entity_of, versions.of_model(reference))
    return lists.page(call, KIND.name, lists.named_in_query(call, entities))


def _load(call: KubeflowCall) -> VersionOfModel:
    return versions.get(call.parsed.id, call.workspace)
