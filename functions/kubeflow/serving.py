"""Serving environments, their inference services, and the services' serve models, which only
Kubeflow's API has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from kubeflow import lists, lookups
from kubeflow.calls import KubeflowCall
from kubeflow.versions import check_stored_name
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL as REGISTERED_MODEL_TYPE
from mlcore.db.expression import Raw
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import invalid, missing_id, not_found
from mlcore.kubeflow.kinds import (
    INFERENCE_SERVICE,
    MODEL_VERSION,
    REGISTERED_MODEL,
    SERVE_MODEL,
    SERVING_ENVIRONMENT,
    EntityKind,
)
from mlcore.models.kubeflow import NumberedItem
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import (
    entities,
    models,
    numbers,
    serving,
    transaction_steps,
    version_lists,
    versions,
)
from mlcore.repos.kubeflow.entities import entity_of

# ------------------------------------------------------------------ environments


def create_environment(call: KubeflowCall) -> AnswerWithStatus:
    (number,) = numbers.take(numbers.CONTEXTS)
    entity = merge.created(SERVING_ENVIRONMENT, number, call.parsed.values, ids.now_ms())
    serving.create_environment(entity, call.workspace, call.username)
    return AnswerWithStatus(call.shown(entity))


def find_environment(call: KubeflowCall) -> dict[str, Any]:
    def by_name(name: str) -> Raw | None:
        number = serving.environment_named(call.workspace, name)
        return None if number is None else by_number(number, call.workspace)

    by_number = partial(entities.find, SERVING_ENVIRONMENT.name)
    return call.shown(entity_of(lookups.find_one(call, SERVING_ENVIRONMENT, by_name, by_number)))


def get_environment(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(entity_of(_environment(call)))


def update_environment(call: KubeflowCall) -> dict[str, Any]:
    return _update(call, SERVING_ENVIRONMENT, entities.change)


def list_environments(call: KubeflowCall) -> Any:
    return _list(call, SERVING_ENVIRONMENT)


def delete_environment(call: KubeflowCall) -> None:
    """Deletes a serving environment and its inference services. Raises ResourceConflict while one
    of the services is deployed."""
    retry_on_conflict(
        SERVING_ENVIRONMENT.words,
        lambda: serving.delete_environment(_environment(call), call.workspace),
    )


def _environment(call: KubeflowCall) -> Raw:
    return _load(call, SERVING_ENVIRONMENT)


# ------------------------------------------------------------------ environments and services


def _load(call: KubeflowCall, kind: EntityKind) -> Raw:
    return entities.get(kind.name, call.parsed.id, call.workspace)


def _list(call: KubeflowCall, kind: EntityKind) -> Any:
    workspace = call.workspace

    def load(numbers: Sequence[int]) -> list[Entity]:
        existing = [
            entity_of(raw)
            for raw in entities.find_many(kind.name, numbers)
            if NumberedItem.of(raw).workspace == workspace
        ]
        return list(_readable(call, iter(existing))) if kind is INFERENCE_SERVICE else existing

    def by_external_id(external_id: str) -> list[Entity]:
        number = transaction_steps.find_external(workspace, kind, external_id)
        return [] if number is None else load([number])

    def by_name(name: str) -> list[Entity]:
        number = serving.environment_named(workspace, name)
        return [] if number is None else load([number])

    source = lists.ListSource(
        kind.name,
        lambda places: load([position.number for position in places]),
        find_by_name=by_name if kind is SERVING_ENVIRONMENT else None,
        find_by_external_id=by_external_id,
    )
    return lists.page_from_indexes(call, kind.name, source)


def _update(
    call: KubeflowCall,
    kind: EntityKind,
    change: Callable[[Raw, str, Callable[[Entity], Entity]], Entity],
) -> dict[str, Any]:
    values = call.parsed.values
    raw = _load(call, kind)
    return call.shown(change(raw, call.workspace, lambda entity: merge.merged(entity, values)))


# ------------------------------------------------------------------ services


def create_service(call: KubeflowCall) -> AnswerWithStatus:
    parent = call.parsed.reference("servingEnvironmentId") or 0
    return _create_service(call, parent, call.parsed.values)


def create_service_in_environment(call: KubeflowCall) -> AnswerWithStatus:
    """Creates an inference service in the serving environment that the path names. An environment
    that the body names is ignored."""
    return _create_service(call, call.parsed.id, call.parsed.values)


def _create_service(call: KubeflowCall, parent: int, values: Values) -> AnswerWithStatus:
    """Creates an inference service. Its environment must exist. As on Kubeflow's server, its model
    and version need not exist."""
    if values.get("name"):
        check_stored_name(parent, values["name"])
    model_number = call.parsed.reference("registeredModelId") or 0
    model = serving.model_in(parent, model_number, call.workspace)
    (number,) = numbers.take(numbers.CONTEXTS)
    values = {**values, "servingEnvironmentId": str(parent)}
    entity = merge.created(INFERENCE_SERVICE, number, values, ids.now_ms())
    serving.create_service(entity, parent, call.workspace, model)
    return AnswerWithStatus(call.shown(entity))


def find_service(call: KubeflowCall) -> dict[str, Any]:
    def by_name(parent: int, name: str) -> Raw | None:
        child = transaction_steps.find_child(parent, INFERENCE_SERVICE, name)
        return None if child is None else by_number(child.number, call.workspace)

    by_number = partial(entities.find, INFERENCE_SERVICE.name)
    return call.shown(entity_of(lookups.find_child(call, INFERENCE_SERVICE, by_name, by_number)))


def get_service(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(entity_of(_service(call)))


def update_service(call: KubeflowCall) -> dict[str, Any]:
    return _update(call, INFERENCE_SERVICE, serving.change_service)


def list_services(call: KubeflowCall) -> Any:
    """Lists the workspace's inference services whose model the caller may read."""
    return _list(call, INFERENCE_SERVICE)


def list_services_of_environment(call: KubeflowCall) -> Any:
    """Lists those inference services of a serving environment whose model the caller may read. The
    list of a missing environment is empty."""
    services = serving.children(call.parsed.id, INFERENCE_SERVICE, call.workspace)
    return lists.page(call, INFERENCE_SERVICE.name, _readable(call, map(entity_of, services)))


def _readable(call: KubeflowCall, services: Iterator[Entity]) -> Iterator[Entity]:
    """Yields the services whose model the caller may read. Takes one BatchGetItem for every hundred
    services."""
    if call.request.access is None:
        yield from services
        return
    may_read = call.request.may_read(REGISTERED_MODEL_TYPE)
    while batch := list(islice(services, entities.LISTED_TOGETHER)):
        model_numbers = [int(service.fields["registeredModelId"]) for service in batch]
        models_found = numbers.find_many(
            list(dict.fromkeys(model_numbers)), REGISTERED_MODEL.name, call.workspace
        )
        names = {model.number: model.name or "" for model in models_found}
        for service, model_number in zip(batch, model_numbers, strict=True):
            if may_read(names.get(model_number, "")):
                yield service


def model_of_service(call: KubeflowCall) -> dict[str, Any]:
    entity = entity_of(_service(call))
    number = int(entity.fields["registeredModelId"])
    return call.shown(models.entity_of(models.get(number, call.workspace)))


def version_of_service(call: KubeflowCall) -> dict[str, Any]:
    """Returns the model version that the inference service names; if it names none, the newest
    version of its model."""
    entity = entity_of(_service(call))
    version_id = entity.fields.get("modelVersionId")
    if version_id:
        version = versions.get(int(version_id), call.workspace)
        return call.shown(versions.entity_of(version))
    model = int(entity.fields["registeredModelId"])
    reference = numbers.get(model, REGISTERED_MODEL.name, call.workspace)
    newest = version_lists.newest(reference)
    if newest is None:
        raise not_found(MODEL_VERSION.words)
    return call.shown(versions.entity_of(newest))


def delete_service(call: KubeflowCall) -> None:
    retry_on_conflict(
        INFERENCE_SERVICE.words,
        lambda: serving.delete_service(_service(call), call.workspace),
    )


def _service(call: KubeflowCall) -> Raw:
    return _load(call, INFERENCE_SERVICE)


# ------------------------------------------------------------------ serve models


def create_serve(call: KubeflowCall) -> AnswerWithStatus:
    """Records that an inference service serves a model version. Both must exist, and the version
    must not be gated or private on Hugging Face."""
    values, parent = call.parsed.values, call.parsed.id
    if values.get("name"):
        check_stored_name(parent, values["name"])
    entities.get(INFERENCE_SERVICE.name, parent, call.workspace)
    version_number = call.parsed.reference("modelVersionId") or 0
    version = versions.find(version_number, call.workspace)
    if version is None:
        raise missing_id(MODEL_VERSION.words, version_number)
    tags = version.document.texts("tags")
    if tags.get("hf_gated", "") not in ("", "false") or tags.get("hf_private") == "true":
        raise invalid(f"model version {version_number} is gated or private on Hugging Face")
    (number,) = numbers.take(numbers.EXECUTIONS)
    entity = merge.created(SERVE_MODEL, number, values, ids.now_ms())
    serving.create_serve(entity, parent, call.workspace)
    return AnswerWithStatus(call.shown(entity))


def list_serves(call: KubeflowCall) -> Any:
    """Lists the serve models of an inference service. The list of a missing service is empty."""
    serve_models = serving.children(call.parsed.id, SERVE_MODEL, call.workspace)
    return lists.page(call, SERVE_MODEL.name, map(entity_of, serve_models))


def delete_serve(call: KubeflowCall) -> None:
    parent, number = call.parsed.id, call.parsed.serve_id

    def attempt() -> None:
        raw = entities.get(SERVE_MODEL.name, number, call.workspace)
        serving.delete_serve(raw, parent, call.workspace)

    retry_on_conflict(SERVE_MODEL.words, attempt)
