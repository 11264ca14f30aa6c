"""Registered models in Kubeflow's API. They are MLflow's registered models; prompts are not
shown."""

from __future__ import annotations

from functools import partial
from typing import Any

from kubeflow import lists, lookups
from kubeflow.calls import KubeflowCall
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import merge
from mlcore.kubeflow.errors import invalid, missing_id
from mlcore.kubeflow.kinds import REGISTERED_MODEL as KIND
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import models, numbers, serving
from mlcore.repos.registry.registered_models import StoredRegisteredModel as Record


def create(call: KubeflowCall) -> AnswerWithStatus:
    """Creates a registered model from a Kubeflow request: takes a number, then writes the model in
    one transaction."""
    values = call.parsed.values
    if values["name"].startswith(":"):
        raise invalid("the name of a registered model cannot begin with ':'")
    (number,) = numbers.take(numbers.CONTEXTS)
    entity = merge.created(KIND, number, values, ids.now_ms())
    models.create(entity, call.workspace, call.request.granting(REGISTERED_MODEL, entity.name))
    return AnswerWithStatus(call.shown(entity))


def find(call: KubeflowCall) -> dict[str, Any]:
    by_name = partial(models.find_by_name, call.workspace)
    return call.shown(models.entity_of(lookups.find_one(call, KIND, by_name, models.find)))


def get(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(models.entity_of(_load(call)))


def update(call: KubeflowCall) -> dict[str, Any]:
    values = call.parsed.values
    return call.shown(models.change(_load(call), lambda entity: merge.merged(entity, values)))


def list_all(call: KubeflowCall) -> Any:
    may_read = call.request.may_read(REGISTERED_MODEL)
    return lists.page_of_shared(
        call,
        KIND,
        lambda record: may_read(record.model.name),
        models.entity_of,
        models.of_entries,
        models.number_and_read,
        models.find,
        models.find_by_name,
    )


def _load(call: KubeflowCall) -> Record:
    return models.get(call.parsed.id, call.workspace)


def delete(call: KubeflowCall) -> None:
    """Deletes a registered model, as MLflow's API does. Raises ResourceConflict while a deployed
    inference service serves it."""

    def attempt() -> None:
        number = call.parsed.id
        reference = numbers.get(number, KIND.name, call.workspace)
        if_unserved = serving.unserved(reference)
        record = models.at(reference)
        if record is None:
            raise missing_id(KIND.words, number)
        models.delete(record, call.request.moving_grants(record.model.name, None), if_unserved)

    retry_on_conflict(KIND.words, attempt)
