"""The rules of serving environments, inference services and serve models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from kubeflow import finds, lists
from kubeflow.answers import Call, Made
from kubeflow.versions import check_stored_name
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL as REGISTERED_MODEL_TYPE
from mlcore.db.expression import Raw
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing, not_found
from mlcore.kubeflow.kinds import (
    INFERENCE_SERVICE,
    MODEL_VERSION,
    REGISTERED_MODEL,
    SERVE_MODEL,
    SERVING_ENVIRONMENT,
    Kind,
)
from mlcore.models.kubeflow import NumberedItem
from mlcore.repos.kubeflow import entities, models, numbers, serving, steps, version_lists, versions
from mlcore.repos.kubeflow.entities import entity_of
from mlcore.settle import settle

# ------------------------------------------------------------------ environments


def create_environment(call: Call) -> Made:
    (number,) = numbers.take(numbers.CONTEXTS)
    entity = merge.created(SERVING_ENVIRONMENT, number, call.asked.values, ids.now_ms())
    serving.create_environment(entity, call.workspace, call.username)
    return Made(call.shown(entity))


def find_environment(call: Call) -> dict[str, Any]:
    def named(name: str) -> Raw | None:
        number = serving.environment_named(call.workspace, name)
        return None if number is None else at(number, call.workspace)

    at = partial(entities.find, SERVING_ENVIRONMENT.name)
    return call.shown(entity_of(finds.find(call, SERVING_ENVIRONMENT, named, at)))


def get_environment(call: Call) -> dict[str, Any]:
    return call.shown(entity_of(_environment(call)))


def update_environment(call: Call) -> dict[str, Any]:
    return _update(call, SERVING_ENVIRONMENT, entities.change)


def list_environments(call: Call) -> Any:
    return _list(call, SERVING_ENVIRONMENT)


def delete_environment(call: Call) -> None:
    """With its services, unless one of them is deployed."""
    settle(
        SERVING_ENVIRONMENT.words,
        lambda: serving.delete_environment(_environment(call), call.workspace),
    )


def _environment(call: Call) -> Raw:
    return _read(call, SERVING_ENVIRONMENT)


# ------------------------------------------------------------------ of either kind


def _read(call: Call, kind: Kind) -> Raw:
    return entities.get(kind.name, call.asked.id, call.workspace)


def _list(call: Call, kind: Kind) -> Any:
    workspace = call.workspace

    def at(found: Sequence[int]) -> list[Entity]:
        there = [
            entity_of(raw)
            for raw in entities.find_many(kind.name, found)
            if NumberedItem.of(raw).workspace == workspace
        ]
        return list(_readable(call, iter(there))) if kind is INFERENCE_SERVICE else there

    def external(value: str) -> list[Entity]:
        number = steps.find_external(workspace, kind, value)
        return [] if number is None else at([number])

    def named(name: str) -> list[Entity]:
        number = serving.environment_named(workspace, name)
        return [] if number is None else at([number])

    listed = lists.Listed(
        kind.name,
        lambda places: at([place.number for place in places]),
        named=named if kind is SERVING_ENVIRONMENT else None,
        external=external,
    )
    return lists.page_of(call, kind.name, listed)


def _update(
    call: Call, kind: Kind, change: Callable[[Raw, str, Callable[[Entity], Entity]], Entity]
) -> dict[str, Any]:
    values = call.asked.values
    raw = _read(call, kind)
    return call.shown(change(raw, call.workspace, lambda entity: merge.merged(entity, values)))


# ------------------------------------------------------------------ services


def create_service(call: Call) -> Made:
    parent = call.asked.reference("servingEnvironmentId") or 0
    return _create_service(call, parent, call.asked.values)


def create_service_in_environment(call: Call) -> Made:
    """The environment in the path counts."""
    return _create_service(call, call.asked.id, call.asked.values)


def _create_service(call: Call, parent: int, values: Values) -> Made:
    """Its environment must be there; its model and version may come later, as upstream has it."""
    if values.get("name"):
        check_stored_name(parent, values["name"])
    wanted = call.asked.reference("registeredModelId") or 0
    model = serving.model_in(parent, wanted, call.workspace)
    (number,) = numbers.take(numbers.CONTEXTS)
    values = {**values, "servingEnvironmentId": str(parent)}
    entity = merge.created(INFERENCE_SERVICE, number, values, ids.now_ms())
    serving.create_service(entity, parent, call.workspace, model)
    return Made(call.shown(entity))


def find_service(call: Call) -> dict[str, Any]:
    def named(parent: int, name: str) -> Raw | None:
        child = steps.find_child(parent, INFERENCE_SERVICE, name)
        return None if child is None else at(child.number, call.workspace)

    at = partial(entities.find, INFERENCE_SERVICE.name)
    return call.shown(entity_of(finds.find_child(call, INFERENCE_SERVICE, named, at)))


def get_service(call: Call) -> dict[str, Any]:
    return call.shown(entity_of(_service(call)))


def update_service(call: Call) -> dict[str, Any]:
    return _update(call, INFERENCE_SERVICE, serving.change_service)


def list_services(call: Call) -> Any:
    """Those whose model the caller may read."""
    return _list(call, INFERENCE_SERVICE)


def list_services_of_environment(call: Call) -> Any:
    """Of a missing environment there are none."""
    found = serving.children(call.asked.id, INFERENCE_SERVICE, call.workspace)
    return lists.page(call, INFERENCE_SERVICE.name, _readable(call, map(entity_of, found)))


def _readable(call: Call, services: Iterator[Entity]) -> Iterator[Entity]:
    """Those whose model the caller may read; one BatchGetItem for each hundred."""
    if call.request.access is None:
        yield from services
        return
    reader = call.request.may_read(REGISTERED_MODEL_TYPE)
    while chunk := list(islice(services, entities.LISTED_TOGETHER)):
        wanted = [int(service.fields["registeredModelId"]) for service in chunk]
        found = numbers.find_many(
            list(dict.fromkeys(wanted)), REGISTERED_MODEL.name, call.workspace
        )
        names = {model.number: model.name or "" for model in found}
        for service, model in zip(chunk, wanted, strict=True):
            if reader(names.get(model, "")):
                yield service


def model_of_service(call: Call) -> dict[str, Any]:
    entity = entity_of(_service(call))
    number = int(entity.fields["registeredModelId"])
    return call.shown(models.entity_of(models.get(number, call.workspace)))


def version_of_service(call: Call) -> dict[str, Any]:
    """The service's version, or else the one of its model that was made last."""
    entity = entity_of(_service(call))
    wanted = entity.fields.get("modelVersionId")
    if wanted:
        read = versions.get(int(wanted), call.workspace)
        return call.shown(versions.entity_of(read))
    model = int(entity.fields["registeredModelId"])
    reference = numbers.get(model, REGISTERED_MODEL.name, call.workspace)
    newest = version_lists.newest(reference)
    if newest is None:
        raise not_found(MODEL_VERSION.words)
    return call.shown(versions.entity_of(newest))


def delete_service(call: Call) -> None:
    settle(
        INFERENCE_SERVICE.words,
        lambda: serving.delete_service(_service(call), call.workspace),
    )


def _service(call: Call) -> Raw:
    return _read(call, INFERENCE_SERVICE)


# ------------------------------------------------------------------ serve models


def create_serve(call: Call) -> Made:
    """Service and version must be there, and the version must be free to be served."""
    values, parent = call.asked.values, call.asked.id
    if values.get("name"):
        check_stored_name(parent, values["name"])
    entities.get(INFERENCE_SERVICE.name, parent, call.workspace)
    wanted = call.asked.reference("modelVersionId") or 0
    version = versions.find(wanted, call.workspace)
    if version is None:
        raise missing(MODEL_VERSION.words, wanted)
    told = version.document.texts("tags")
    if told.get("hf_gated", "") not in ("", "false") or told.get("hf_private") == "true":
        raise bad(f"model version {wanted} is gated or private on Hugging Face")
    (number,) = numbers.take(numbers.EXECUTIONS)
    entity = merge.created(SERVE_MODEL, number, values, ids.now_ms())
    serving.create_serve(entity, parent, call.workspace)
    return Made(call.shown(entity))


def list_serves(call: Call) -> Any:
    """Of a missing service there are none."""
    found = serving.children(call.asked.id, SERVE_MODEL, call.workspace)
    return lists.page(call, SERVE_MODEL.name, map(entity_of, found))


def delete_serve(call: Call) -> None:
    parent, number = call.asked.id, call.asked.serve_id

    def attempt() -> None:
        raw = entities.get(SERVE_MODEL.name, number, call.workspace)
        serving.delete_serve(raw, parent, call.workspace)

    settle(SERVE_MODEL.words, attempt)
