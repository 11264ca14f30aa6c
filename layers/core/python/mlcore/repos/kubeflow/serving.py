"""Serving environments, their inference services, and which model each service serves.

A model's *reference* is the item that maps its number (Kubeflow's integer id) to MLflow's item
(:mod:`mlcore.repos.kubeflow.numbers`). Deploying a service writes the reference, so that it or a
Kubeflow deletion of the model at the same time fails.
"""

from __future__ import annotations

from collections.abc import Callable

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.table import Check, Delete, ItemUpdate, Operation, Put, table
from mlcore.errors import ResourceConflict
from mlcore.ids import now_ms
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import (
    INFERENCE_SERVICE,
    REGISTERED_MODEL,
    SERVE_MODEL,
    SERVING_ENVIRONMENT,
    EntityKind,
)
from mlcore.models.kubeflow import (
    ContextChild,
    ContextName,
    ContextRef,
    NumberedItem,
    ServeModel,
)
from mlcore.models.kubeflow import InferenceService as InferenceServiceItem
from mlcore.repos.kubeflow import entities, numbers, transaction_steps
from mlcore.repos.kubeflow.entities import entity_of
from mlcore.repos.kubeflow.numbers import absent
from mlcore.repos.kubeflow.transaction_steps import TransactionStep

DEPLOYED = "DEPLOYED"

SERVING = "serving"
"""Kind of a model's child items that name the services serving it."""


def create_environment(entity: Entity, workspace: str, username: str | None) -> None:
    """Creates a serving environment in one transaction. Raises ResourceConflict if its name or
    external id is taken."""
    kind = SERVING_ENVIRONMENT
    key = keys.context_name(workspace, kind.name, entity.name)
    lock = ContextName(PK=key.pk, SK=key.sk, number=entity.id, updated_at=now_ms(), version=1)
    named = TransactionStep(Put(lock.serialize(), absent()), name_taken(kind.title, entity.name))
    made = entities.creation(entity, workspace, created_by=username)
    transaction_steps.execute([*transaction_steps.enter(workspace), *made, named])


def environment_named(workspace: str, name: str) -> int | None:
    """Returns the number (Kubeflow's integer id) of the serving environment with a name; None if
    there is none. One consistent GetItem."""
    item = table.get(keys.context_name(workspace, SERVING_ENVIRONMENT.name, name))
    return None if item is None else ContextName.of(item).number


def model_in(environment: int, model: int, workspace: str) -> ContextRef | None:
    """Returns the reference (the item that maps a Kubeflow number to MLflow's item) of the
    registered model that a new inference service of a serving environment is to serve; None if the
    model does not exist, which Kubeflow's own registry accepts. One BatchGetItem. Raises
    ResourceDoesNotExist if the environment does not exist.

    Args:
        environment, model: the Kubeflow numbers of the environment and of the model.
    """
    raw, reference = table.batch_get(
        [keys.serving_environment(environment), keys.context_ref(model)]
    )
    if raw is None or NumberedItem.of(raw).workspace != workspace:
        raise missing_id(SERVING_ENVIRONMENT.words, environment)
    return numbers.of_kind(reference, REGISTERED_MODEL.name, workspace)


def create_service(
    entity: Entity, environment: int, workspace: str, model: ContextRef | None
) -> None:
    """Creates a Kubeflow inference service, the lock of its name in its serving environment, and
    its entry among the services of its registered model, in one transaction.

    Raises:
        ResourceConflict: the name or the external id is taken, or the model was deleted meanwhile.
        ResourceDoesNotExist: the serving environment was deleted.
    """
    made = entities.creation(entity, workspace, parent=environment)
    transaction_steps.execute(
        [
            *transaction_steps.enter(workspace),
            *made,
            *_under(entity, environment, SERVING_ENVIRONMENT),
            _serving(entity),
            *_held(model),
        ]
    )


def change_service(raw: Raw, workspace: str, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes a Kubeflow inference service changed by ``alter``; returns it as written. If the
    change deploys it, or lets it serve another version, a deletion of its model meanwhile is an
    error.

    Args:
        raw: the service's item as it was read.
        alter: returns the changed service; called again after a conflict.
    """

    def holding(before: Entity, after: Entity) -> list[TransactionStep]:
        if _serves(after) in (None, _serves(before)):
            return []
        model = int(after.fields["registeredModelId"])
        return _held(numbers.of_kind(numbers.raw(model), REGISTERED_MODEL.name, workspace))

    return entities.change(raw, workspace, alter, holding)


def _serves(service: Entity) -> str | None:
    """Returns the id of the version that a deployed service serves, "" if it names none; None if
    the service is not deployed."""
    if service.fields.get("desiredState") != DEPLOYED:
        return None
    return service.fields.get("modelVersionId") or ""


def _held(model: ContextRef | None) -> list[TransactionStep]:
    """Returns a step that fails if the model was deleted, and that makes a concurrent deletion of
    the model fail; no step without a model."""
    if model is None:
        return []
    gone = ResourceConflict(f"the registered model {model.number} was deleted meanwhile")
    return [TransactionStep(numbers.hold(model), gone)]


def _serving(service: Entity) -> TransactionStep:
    """Returns the step that adds a service to the services of its model (``CHILD#serving#…``)."""
    key = _served(service)
    item = ContextChild(
        PK=key.pk,
        SK=key.sk,
        number=service.id,
        kind=SERVING,
        name=str(service.id),
        updated_at=now_ms(),
        version=1,
    )
    return TransactionStep(Put(item.serialize(), absent()))


def _served(service: Entity) -> keys.Key:
    model = int(service.fields["registeredModelId"])
    return keys.context_child(model, SERVING, str(service.id))


def create_serve(entity: Entity, service: int, workspace: str) -> None:
    """Creates a Kubeflow ServeModel (the record that an inference service serves a model version)
    in one transaction. Raises ResourceConflict if its name or external id is taken,
    ResourceDoesNotExist if the inference service was deleted."""
    made = entities.creation(entity, workspace, parent=service)
    under = _under(entity, service, INFERENCE_SERVICE)
    transaction_steps.execute([*transaction_steps.enter(workspace), *made, *under])


def _under(entity: Entity, parent: int, kind: EntityKind) -> list[TransactionStep]:
    """Returns the steps that lock the entity's name among its parent's children and make a
    concurrent deletion of the parent fail."""
    error = name_taken(entity.of_kind.title, entity.name)
    held = Update()
    held.add(NumberedItem.version, 1)
    held.set(NumberedItem.updated_at, now_ms())
    held.require_exists(NumberedItem.PK)
    return [
        transaction_steps.reserve_child_name(
            parent, entity.of_kind, entity.name, entity.id, None, error
        ),
        TransactionStep(
            ItemUpdate(entities.key_of(kind.name, parent), held), missing_id(kind.words, parent)
        ),
    ]


def children(parent: int, kind: EntityKind, workspace: str) -> list[Raw]:
    """Returns the items of the inference services of a serving environment, or of the ServeModels
    of an inference service. One Query per MB of references, and one BatchGetItem per hundred.

    Args:
        parent: the Kubeflow number of the environment or service.
        kind: the kind of the children.
    """
    return _linked(parent, kind.name, kind, workspace)


def _linked(parent: int, child_kind: str, kind: EntityKind, workspace: str) -> list[Raw]:
    items = table.query_all(keys.context(parent), prefix=keys.context_child_prefix(child_kind))
    linked = [ContextChild.of(item).number for item in items]
    raws = entities.find_many(kind.name, linked)
    return [raw for raw in raws if NumberedItem.of(raw).workspace == workspace]


# ------------------------------------------------------------------ removal


def unserved(model: ContextRef, version: int | None = None) -> ConditionExpression:
    """Returns a condition, for the transaction that deletes a registered model or one of its
    versions, that no longer holds once an inference service starts to serve the model. It is a
    condition on the model's reference (the item that maps its Kubeflow number to MLflow's item).

    Reads the list of the model's services, then the services (consistent, a hundred at a time).

    Args:
        model: the model's reference.
        version: the number of the version to delete; None to delete the model.

    Raises:
        ResourceConflict: a deployed service serves the model, or this version of it (a service that
            names no version serves any).
    """
    for raw in _linked(model.number, SERVING, INFERENCE_SERVICE, model.workspace):
        service = entity_of(raw)
        named = _serves(service)
        if named is not None and (version is None or named in ("", str(version))):
            raise ResourceConflict(
                f"the inference service {service.id} is deployed and serves it; undeploy it first"
            )
    return numbers.unchanged(model)


def unserved_version(model: int, workspace: str, version: int) -> list[Operation]:
    """Returns the checks for the transaction that deletes a model version. They fail if a service
    starts to serve the version meanwhile (:func:`unserved`).

    Args:
        model, version: the numbers of the model and of the version.

    Raises:
        ResourceDoesNotExist: the model was deleted.
        ResourceConflict: a deployed service serves the version.
    """
    reference = numbers.get(model, REGISTERED_MODEL.name, workspace)
    return [Check(keys.context_ref(model), unserved(reference, version))]


def delete_environment(raw: Raw, workspace: str) -> None:
    """Deletes a Kubeflow serving environment with its inference services. Raises ResourceConflict
    if one of these services is deployed."""
    entity = entity_of(raw)
    services = children(entity.id, INFERENCE_SERVICE, workspace)
    for service in services:
        if entity_of(service).fields.get("desiredState") == DEPLOYED:
            raise ResourceConflict(
                f"serving environment {entity.id} has the inference service "
                f"{entity_of(service).id}, which is deployed"
            )
    for service in services:
        _remove_service(service, workspace)
    name = keys.context_name(workspace, SERVING_ENVIRONMENT.name, entity.name)
    _remove(raw, workspace, [TransactionStep(Delete(name))])


def delete_service(raw: Raw, workspace: str) -> None:
    _remove_service(raw, workspace)


def _remove_service(raw: Raw, workspace: str) -> None:
    service = InferenceServiceItem.of(raw)
    for serve in children(service.number, SERVE_MODEL, workspace):
        delete_serve(serve, service.number, workspace)
    child = keys.context_child(service.parent, INFERENCE_SERVICE.name, service.name)
    _remove(
        raw,
        workspace,
        [TransactionStep(Delete(child)), TransactionStep(Delete(_served(entity_of(raw))))],
    )


def delete_serve(raw: Raw, service: int, workspace: str) -> None:
    """Deletes a serve model of Kubeflow's registry. Raises ResourceDoesNotExist if it belongs to an
    inference service other than ``service``."""
    serve = ServeModel.of(raw)
    if serve.parent != service:
        raise missing_id(SERVE_MODEL.words, serve.number)
    child = keys.context_child(service, SERVE_MODEL.name, serve.name)
    _remove(raw, workspace, [TransactionStep(Delete(child))])


def _remove(raw: Raw, workspace: str, beside: list[TransactionStep]) -> None:
    """Deletes an entity's item with its external id and executes the steps ``beside``, in one
    transaction. Raises WriteConflict if the item changed since it was read."""
    item = NumberedItem.of(raw)
    entity = entity_of(raw)
    mine = ConditionExpression()
    mine.require_equal(NumberedItem.version, item.version)
    gone = TransactionStep(Delete(entities.key_of(entity.kind, entity.id), mine))
    external = transaction_steps.change_external_id(
        workspace, entity.of_kind, entity.id, entity.external_id, None
    )
    transaction_steps.execute([gone, *beside, *external])
